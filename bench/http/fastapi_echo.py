# SPDX-License-Identifier: Apache-2.0
"""The tool `echo` as a service in FastAPI, its arguments checked by pydantic as the schema of gateway/provider.c says.

  fastapi_echo.py PORT

Run by the Python of a venv that has requirements.txt. One process, without a log of requests.
"""

import sys

import fastapi
import pydantic
import uvicorn


class Arguments(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    text: str


app = fastapi.FastAPI()


@app.post("/echo")
async def echo(arguments: Arguments) -> Arguments:
    return arguments


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
