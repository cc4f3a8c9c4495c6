# SPDX-License-Identifier: Apache-2.0
"""What the real APIs refuse in a request, as far as an engine can get it wrong.

    refuse(provider, body, headers, issued)   raises Refused, whose words are those of the provider

`issued` are the opaque strings that the replayed answers hold (signatures, sealed thoughts): a
provider refuses those that it did not make itself.
"""

from .anthropic import check_anthropic
from .common import Refused, need
from .gemini import check_gemini
from .openai import check_chat, check_responses

CHECKS = {"openai-chat": check_chat, "openai-responses": check_responses,
          "anthropic": check_anthropic, "gemini": check_gemini}
GEMINI_STATUS = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                 500: "INTERNAL"}
ANTHROPIC_TYPES = {400: "invalid_request_error", 401: "authentication_error",
                   404: "not_found_error", 500: "api_error"}


def refuse(provider, body, headers, issued):
    """headers have lower case names; `model` among them is that of Gemini's path."""
    need(isinstance(body, dict), "We could not parse the JSON body of your request.")
    CHECKS[provider](body, headers, issued)


def error_body(provider, refused):
    if provider == "gemini":
        return {"error": {"code": refused.status, "message": refused.message,
                          "status": GEMINI_STATUS.get(refused.status, "UNKNOWN")}}
    if provider == "anthropic":
        return {"type": "error", "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy", "error": {
            "type": ANTHROPIC_TYPES.get(refused.status, "api_error"), "message": refused.message}}
    return {"error": {"message": refused.message, "type": "invalid_request_error",
                      "param": refused.param, "code": refused.code}}
