"""The routes of the server: the page, its files, and the API that also programs can use."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from cell_attention._version import __version__
from cell_attention.app import pages
from cell_attention.app.limits import ServeLimits
from cell_attention.app.pool import Answer, Pool, fault
from cell_attention.app.requests import ExplainRequest, PredictRequest, ReadRequest, TooLargeError
from cell_attention.errors import InputError

MISSING, LARGE, BAD_INPUT, FAILED = 404, 413, 422, 500
NO_MODEL = "there is no model: start the server with the folder of one"
ERRORS = {
    400: "The body is not text in UTF-8, or is nested too deeply.",
    403: "A request from the page of another site.",
    404: "There is no such address, or the server has no model.",
    408: "The body arrived too slowly.",
    413: "The body is too large, or has too many rows.",
    415: "The body is not JSON.",
    421: "The Host header names another machine.",
    422: "The body breaks a rule; a molecule that cannot be read is no such error.",
    503: "Too many requests are waiting.",
    504: "The work took too long.",
}


@dataclass(frozen=True)
class Served:
    """What is served: the worker processes and the model that they hold; neither without one."""

    limits: ServeLimits
    pool: Pool | None = None
    model: dict[str, Any] = field(default_factory=dict)

    async def ask(self, verb: str, body: Any) -> Response:
        """Let a worker do a job."""
        if self.pool is None:
            return _response(fault(MISSING, NO_MODEL))
        return _response(await self.pool.ask({"verb": verb, **asdict(body)}))


def application(served: Served) -> Any:
    """Make the application; `Guard` must stand before it."""
    app = FastAPI(
        title="cell-attention", version=__version__, docs_url=None, redoc_url=None,
        openapi_url="/openapi.json", description="Predictions and explanations of one model.",
    )  # fmt: skip
    _add_errors(app)
    _add_api(app, served)
    _add_pages(app, served)
    return app


def _add_api(app: Any, served: Served) -> None:
    limits = served.limits

    async def predict(body: PredictRequest) -> Response:
        body.require(limits.rows)
        return await served.ask("predict", body)

    async def explain(body: ExplainRequest) -> Response:
        body.require_explained(limits)
        return await served.ask("explain", body)

    async def read(body: ReadRequest) -> Response:
        body.require()
        return await served.ask("read", body)

    async def model() -> Any:
        if served.pool is None:
            return _response(fault(MISSING, NO_MODEL))
        about = {name: value for name, value in served.model.items() if name != "page"}
        return {**about, "limits": asdict(limits)}

    async def health() -> Any:
        busy = 0 if served.pool is None else served.pool.busy
        name = served.model.get("model")
        return {"status": "ok", "version": __version__, "model": name, "busy": busy}

    errors = {code: {"description": text, "content": _example(_SAID)} for code, text in ERRORS.items()}  # noqa: E501 # fmt: skip
    for path, method, function, summary, example in (
        ("/api/predict", "POST", predict, "Predict; every row has a prediction or its error.",
         {"predictions": [_PREDICTED, _REFUSED]}),
        ("/api/explain", "POST", explain, "Predict, and say what every prediction rests on.",
         {"predictions": [{**_PREDICTED, "explanation": {"edges": [0.12, -0.03], "nodes": []}}]}),
        ("/api/read", "POST", read, "Split a .csv, .tsv or .smi file into rows.",
         {"rows": [{"line": 2, "smiles": "CCO", "name": "ethanol"}]}),
        ("/api/model", "GET", model, "What the model predicts and reads, and the limits.",
         {"model": "MUTAG-model", "task": "classes", "labels": ["-1", "1"]}),
        ("/health", "GET", health, "Whether the server answers.",
         {"status": "ok", "version": __version__, "model": "MUTAG-model", "busy": 0}),
    ):  # fmt: skip
        answers = {200: {"description": "The answer.", "content": _example(example)}}
        app.add_api_route(
            path, function, methods=[method], summary=summary, response_model=None,
            responses=answers | (errors if method == "POST" else {}),
        )  # fmt: skip


_SAID = {"error": "one line"}
_PREDICTED = {
    "row": 1, "smiles": "O=[N+]([O-])c1ccccc1", "prediction": "1", "probability_1": 0.93,
    "warning": "", "error": "",
}  # fmt: skip
_REFUSED = {
    "row": 2, "smiles": "C1CC", "prediction": None, "probability_1": None, "warning": "",
    "error": "RDKit cannot read 'C1CC' (unclosed ring)",
}  # fmt: skip


def _example(value: Any) -> dict[str, Any]:
    return {"application/json": {"example": value}}


def _add_pages(app: Any, served: Served) -> None:
    def add(path: str, text: str, kind: str = "text/html") -> None:
        async def send() -> Response:
            return Response(text, media_type=f"{kind}; charset=utf-8")

        app.add_api_route(path, send, methods=["GET"], include_in_schema=False)

    async def described() -> Response:
        return HTMLResponse(pages.api_page(app.openapi(), served.limits))

    app.add_api_route("/docs", described, methods=["GET"], include_in_schema=False)
    add("/", pages.model_page(served.model, served.limits) if served.pool else pages.bare_page())
    for name, text in pages.assets().items():
        add(f"/assets/{name}", text, pages.kind_of(name))


def _add_errors(app: Any) -> None:
    async def refused(_: Request, error: Any) -> Response:
        return _response(fault(error.status_code, str(error.detail)), error.headers)

    async def invalid(_: Request, error: Any) -> Response:
        return _response(fault(BAD_INPUT, _first(error.errors())))

    async def wrong(_: Request, error: Exception) -> Response:
        return _response(
            fault(LARGE if isinstance(error, TooLargeError) else BAD_INPUT, str(error))
        )

    async def failed(_: Request, error: Exception) -> Response:
        return _response(fault(FAILED, f"this request failed ({type(error).__name__})"))

    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(InputError, wrong)
    app.add_exception_handler(Exception, failed)


def _first(errors: Sequence[dict[str, Any]]) -> str:
    """Say in one line where the first rule is broken."""
    first = errors[0]
    if first["type"] == "json_invalid":
        return f"the body is not JSON: {first.get('ctx', {}).get('error', 'it cannot be read')}"
    place = ", entry ".join(str(part)[:60] for part in first["loc"][1:])
    return f"{place or 'the body'}: {first['msg'][:200]}"


def _response(answer: Answer, headers: Any = None) -> Response:
    more = {"retry-after": "1"} if answer.status == 503 else {}
    return Response(
        answer.body, answer.status, {**(headers or {}), **more}, media_type="application/json"
    )
