"""The lab's server: a small ASGI application on the loopback address, behind a random token.

GET  /?token=…   the page, which contains its script and style
POST /ask        a JSON request, with the token in the header X-Token; the answer is a binary message

One thread computes, so that ten open pages cannot crowd the machine; a page that is closed leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from leastaction.lab.answers import Answers
from leastaction.lab.subjects import OWN, Subject, Subjects
from leastaction.results.viewer.pack import dump
from leastaction.results.viewer.page import asset, bundle, page

HOST = "127.0.0.1"
LONGEST_REQUEST = 64 * 1024
LAB = "leastaction.lab"
START = 'openLab(document.getElementById("view"), JSON.parse(document.getElementById("data").textContent));'
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def application(subjects: Subjects, token: str, first: str) -> Any:
    """The ASGI application; `first` is the subject that a page shows, unless its link names another one."""
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.middleware.trustedhost import TrustedHostMiddleware
        from starlette.responses import HTMLResponse, PlainTextResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise ImportError("the lab needs Starlette and Uvicorn: pip install 'leastaction[lab]'") from None

    answers, thread = Answers(subjects), ThreadPoolExecutor(1, "lab")
    text = page("leastaction lab", script(), style(), _data(first), connect=True)

    def welcome(given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), token.encode())

    async def home(request: Any) -> Any:
        if not welcome(request.query_params.get("token")):
            words = "This lab is opened by the address that `leastaction lab` printed, with its token."
            return PlainTextResponse(words, 403, HEADERS)
        return HTMLResponse(text, headers=HEADERS)

    async def ask(request: Any) -> Any:
        if not welcome(request.headers.get("x-token")):
            return PlainTextResponse("the token is missing or wrong", 403, HEADERS)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LONGEST_REQUEST:
                return PlainTextResponse("the request is too long", 413, HEADERS)
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            return PlainTextResponse("the request is not JSON", 400, HEADERS)
        found = await asyncio.get_running_loop().run_in_executor(thread, answers.answer, asked)
        return Response(found, media_type="application/octet-stream", headers=HEADERS)

    return Starlette(
        routes=[Route("/", home), Route("/ask", ask, methods=["POST"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"])],
    )


def script() -> str:
    return f"{bundle('lab.js', 'page.js', package=LAB)}\n{START}"


def style() -> str:
    return asset("page.css") + asset("view.css") + asset("lab.css", LAB)


def _data(first: str) -> str:
    return dump({"first": first}).replace("<", "\\u003c").replace("&", "\\u0026")


def serve(
    first: str | None = None, own: Subject | None = None, port: int = 0, browser: bool = True, link: str | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Serve the lab until Ctrl-C; print its address, and open it.

    first    the subject shown at first
    own      a system of the user's own
    link     a link that the lab gave before: its state is restored
    ready    called with the address when the lab answers
    """
    try:
        import uvicorn
    except ImportError:
        raise ImportError("the lab needs Starlette and Uvicorn: pip install 'leastaction[lab]'") from None
    token = secrets.token_urlsafe(18)
    subjects = Subjects(own)
    chosen = first or (OWN if own is not None else "double-pendulum")
    subjects.get(chosen)  # so that an error of the subject is raised here
    app = application(subjects, token, chosen)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((HOST, port))
        except OSError as error:
            raise OSError(f"port {port} of {HOST} cannot be used: {error.strerror or error}") from None
        fragment = urlsplit(link).fragment if link else ""
        address = f"http://{HOST}:{door.getsockname()[1]}/?token={token}" + (f"#{fragment}" if fragment else "")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))
        door.listen(128)
        print(f"leastaction lab: {address}\nCtrl-C ends it.", flush=True)
        if ready is not None:
            ready(address)
        if browser and not webbrowser.open(address):
            print("no browser could be opened; open the address yourself", file=sys.stderr)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is the ordinary end of the lab
            server.run(sockets=[door])
