"""Look into an image again, for more than a probe asked for.

Request: `pair`, `image` (an id), `paths` (absolute), `names_in` (those of them that are vLLM's lists of variables).
Answer: `image_id`, `present`, `absent`, and `names` by path. The node keeps it, by the image's id.
"""

from __future__ import annotations

from dspark_deploy.remote.programs._engine import Engine, NoEngine
from dspark_deploy.remote.programs._frame import Call, Refused, serve
from dspark_deploy.remote.programs._look import look_into, remove_left_over
from dspark_deploy.remote.programs._notes import keep_look

ANSWER_S = 20.0


def main(call: Call) -> None:
    """See the module."""
    request = call.request
    call.end_with_session(lambda: remove_left_over(Engine(ANSWER_S), older_than_s=0))
    engine = Engine(ANSWER_S)
    try:
        engine.version()
        answer = look_into(engine, request["image"], request["paths"], request["names_in"])
    except NoEngine as error:
        raise Refused(f"the image {request['image'][:19]} can't be looked into", why=error.detail) from error
    keep_look(request["pair"], answer)
    call.answer(answer)


if __name__ == "__main__":
    serve(main)
