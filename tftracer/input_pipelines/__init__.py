"""What limits a ``tf.data`` pipeline: ``watch`` looks into iterators where they run, ``flow`` and ``answer`` say it elsewhere."""
