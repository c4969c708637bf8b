"""Maps errors to HTTP answers: status, code and message."""

from __future__ import annotations

from tornado import web

from tftracer import errors

#: The status and code of each error; the first matching class counts.
STATUS: list[tuple[type[errors.TracerError], int, str]] = [
    (errors.UnknownError, 404, "unknown"),
    (errors.UnsupportedError, 409, "unsupported"),
    (errors.MissingTensorFlowError, 409, "no_tensorflow"),
    (errors.FormatError, 400, "bad_file"),
    (errors.StorageError, 507, "storage"),
    (errors.HelperError, 503, "analysis_failed"),
]


class Refusal(web.HTTPError):
    """An error answer to a request, with a code and message that docs/http-api.rst lists."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status)
        self.code = code
        self.message = message
        self.headers = headers or {}


def describe(problem: BaseException | None, status: int) -> tuple[int, str, str]:
    """Return status, code and message of an error. ``status``: Tornado's, for errors other than TracerError."""
    if isinstance(problem, Refusal):
        return status, problem.code, problem.message
    if isinstance(problem, errors.TracerError):
        for kind, its_status, code in STATUS:
            if isinstance(problem, kind):
                return its_status, code, str(problem)
        return 500, "failed", str(problem)
    if status < 500:
        return status, "bad_request", "This request is not valid; docs/http-api.rst describes valid requests."
    return status, "internal", "The server failed to answer this request; its log says why. Training is not affected."
