/** A made-up input pipeline, for developing the page and for its tests. Not shipped. */
import type { InputPipeline, InputPipelines, PipelineStage } from "@/client/messages";

function stage(depth: number, name: string, change: Partial<PipelineStage> = {}): PipelineStage {
  return {
    depth,
    name,
    function: "",
    place: "",
    elements: 1000,
    element_s: 0.00001,
    rate: 50,
    busy: 0.0005,
    parallelism: null,
    parallelism_max: null,
    is_tuned: false,
    buffered: null,
    buffer_size: null,
    capacity: 100_000,
    is_limiting: false,
    ...change,
  };
}

export function fakePipelines(change: Partial<InputPipeline> = {}, text = ""): InputPipelines {
  return {
    pipelines: [
      {
        title: "TFRecord → map(decode) → batch → prefetch",
        at: 1_790_000_100,
        is_open: true,
        elements: 1000,
        unit: "batches",
        rate: 50,
        wait: 0.8,
        side: "input",
        text: "The training waits for input 80% of the time: map(decode) at train.py:12 limits it to 50 batches/s.",
        advice: "Set map(..., num_parallel_calls=tf.data.AUTOTUNE).",
        predicted_rate: 190,
        stages: [
          stage(0, "Prefetch", { buffered: 0, buffer_size: 2 }),
          stage(1, "MapAndBatch", {
            function: "decode",
            place: "train.py:12",
            busy: 0.99,
            parallelism: 1,
            parallelism_max: 4,
            capacity: 50,
            is_limiting: true,
          }),
          stage(2, "TFRecord"),
        ],
        history: [],
        ...change,
      },
    ],
    text,
  };
}
