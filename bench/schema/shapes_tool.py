# SPDX-License-Identifier: Apache-2.0
"""Arguments of tool calls: small, flat or a little nested, mostly short strings."""


def search(d):
    filters = d.some({
        "author": d.name,
        "tags": lambda: d.list(0, 6, d.word),
        "language": lambda: d.choice(["en", "de", "fr", "es", "ja"]),
        "created": lambda: {"after": d.date(), "before": d.date()},
        "updated": lambda: {"after": d.date()},
        "size": lambda: {"min": d.randint(0, 1000), "max": d.randint(1000, 99999)},
        "archived": lambda: d.chance(0.5),
    }, 0.6)
    sort = lambda: {"field": d.choice(["relevance", "created", "title"]), "direction": d.choice(["asc", "desc"])}
    return {"query": d.text(2, 12), "filters": filters, **d.some({
        "sort": lambda: d.list(1, 3, sort),
        "limit": lambda: d.randint(1, 100),
        "offset": lambda: d.randint(0, 500),
        "include_snippets": lambda: d.chance(0.5),
        "min_score": lambda: d.decimal(0, 1, 3),
    }, 0.7)}


def edit(d):
    def position():
        return {"line": d.randint(1, 2000), "column": d.randint(0, 120)}

    def one_edit():
        edit = {"old_text": d.text(3, 20), "new_text": "\n".join(d.list(1, 4, lambda: d.text(3, 10)))}
        if d.chance(0.3):
            edit["replace_all"] = d.chance(0.5)
        if d.chance(0.4):
            edit["range"] = {"start": position(), "end": position()}
        return edit

    path = "/".join(d.list(1, 5, d.word)) + ".c"
    return {"path": path, "edits": d.list(1, 8, one_edit), **d.some({
        "create_if_missing": lambda: d.chance(0.5),
        "encoding": lambda: d.choice(["utf-8", "utf-16", "latin-1"]),
        "dry_run": lambda: d.chance(0.5),
    }, 0.5)}


def calendar(d):
    def attendee():
        return {"email": d.email(), **d.some({
            "name": d.name,
            "optional": lambda: d.chance(0.5),
            "response": lambda: d.choice(["accepted", "declined", "tentative", "needs_action"]),
        }, 0.6)}

    def recurrence():
        rule = {"frequency": d.choice(["daily", "weekly", "monthly"]), "interval": d.randint(1, 9)}
        if d.chance(0.6):
            rule["by_day"] = d.sample(["MO", "TU", "WE", "TH", "FR", "SA", "SU"], d.randint(1, 4))
        rule.update({"until": d.date()} if d.chance(0.5) else {"count": d.randint(1, 50)})
        return rule

    reminder = lambda: {"method": d.choice(["email", "popup"]), "minutes_before": d.randint(0, 2000)}
    return {"title": d.text(2, 6), "start": d.instant(), "end": d.instant(), **d.some({
        "calendar_id": d.uuid,
        "description": lambda: d.text(5, 40),
        "time_zone": lambda: d.choice(["Europe/Zurich", "America/New_York", "Asia/Tokyo", "UTC"]),
        "location": lambda: d.text(2, 5),
        "conference_url": d.url,
        "attendees": lambda: d.list(1, 8, attendee),
        "recurrence": recurrence,
        "reminders": lambda: d.list(0, 3, reminder),
        "visibility": lambda: d.choice(["default", "public", "private"]),
    }, 0.7)}


def sql(d):
    def scalar():
        return d.choice([
            lambda: d.text(1, 6), lambda: d.randint(-1000, 10**9), lambda: d.decimal(-100, 100, 4),
            lambda: d.chance(0.5), lambda: None, lambda: {"$blob": d.hex(40) + "=="},
        ])()

    columns = ", ".join(d.list(1, 8, d.word))
    query = f"{d.choice(['SELECT', 'select'])} {columns} FROM {d.word()} WHERE {d.word()} = ? AND {d.word()} > ?"
    args = {"database": d.word(), "query": query}
    if d.chance(0.6):
        args["params"] = d.list(1, 8, scalar)
    elif d.chance(0.7):
        args["named_params"] = {d.word(): scalar() for _ in range(d.randint(1, 6))}
    return {**args, **d.some({
        "limit": lambda: d.randint(1, 1000),
        "timeout_ms": lambda: d.randint(100, 60000),
        "format": lambda: d.choice(["rows", "columns", "csv", "markdown"]),
        "read_only": lambda: True,
    }, 0.6)}


def http(d):
    def body():
        return d.choice([
            lambda: {"kind": "json", "value": {d.word(): d.text(1, 5), "n": d.randint(0, 99), "list": d.list(0, 4, d.word)}},
            lambda: {"kind": "form", "fields": {d.word(): d.text(1, 4) for _ in range(4)}},
            lambda: {"kind": "text", "text": d.text(5, 30), "content_type": "text/plain"},
            lambda: {"kind": "base64", "data": d.hex(64) + "="},
        ])()

    headers = {"Accept": "application/json", "User-Agent": "pegboard/0.1", "X-Request-Id": d.uuid()}
    if d.chance(0.4):
        headers["Cache-Control"] = ["no-cache", "no-store"]
    auth = lambda: d.choice([
        {"type": "basic", "username": d.word(), "secret_name": "API_SECRET"},
        {"type": "bearer", "secret_name": "TOKEN_2"}, {"type": "none"},
    ])
    return {"method": d.choice(["GET", "POST", "PUT", "DELETE"]), "url": d.url(), "headers": headers, **d.some({
        "query": lambda: {"page": d.randint(1, 9), "q": d.word(), "deep": d.chance(0.5)},
        "body": body,
        "auth": auth,
        "timeout_ms": lambda: d.randint(1, 120000),
        "follow_redirects": lambda: d.chance(0.5),
        "max_bytes": lambda: d.randint(1, 10**7),
    }, 0.6)}


def order(d):
    def address():
        place = {"street": d.text(2, 3), "city": d.word().capitalize(), "postcode": str(d.randint(1000, 99999)),
                 "country": d.choice(["CH", "DE", "US", "JP"])}
        if d.chance(0.4):
            place["coordinates"] = [d.decimal(-180, 180, 5), d.decimal(-90, 90, 5)]
        return place

    def item():
        return {"sku": d.choice(["ABC", "XYZ", "PEG"]) + f"-{d.randint(1000, 9999999)}",
                "quantity": d.randint(1, 20), "unit_price": d.money(), **d.some({
                    "title": lambda: d.text(2, 5),
                    "discount": lambda: d.decimal(0, 0.9, 2),
                    "options": lambda: {"colour": d.word(), "size": d.choice("SML")},
                    "gift": lambda: d.chance(0.5),
                }, 0.5)}

    payment = {"method": d.choice(["card", "invoice"]), "currency": d.choice(["EUR", "USD", "CHF"]), "total": d.money()}
    customer = {"id": d.randint(1, 10**6), "name": d.name(), "email": d.email(), "loyalty": d.choice(["none", "gold"])}
    return {"customer": customer, "shipping": address(), "items": d.list(1, 12, item), "payment": payment, **d.some({
        "billing": lambda: address() if d.chance(0.5) else None,
        "coupons": lambda: d.sample(["SPRING24", "WELCOME", "VIP10", "FREESHIP"], d.randint(0, 3)),
        "notes": lambda: d.text(3, 20) if d.chance(0.7) else None,
    }, 0.6)}


def patterns(d):
    return {"service": d.word() + "-" + d.word(),
            "version": f"{d.randint(0, 20)}.{d.randint(0, 99)}.{d.randint(0, 99)}" + d.choice(["", "-rc.1", "+build.7"]),
            "commit": d.hex(40),
            "image": f"registry.example.com:5000/{d.word()}/{d.word()}@sha256:{d.hex(64)}",
            "region": d.choice(["eu", "us", "ap"]) + "-" + d.choice(["north", "east", "central"]) + f"-{d.randint(1, 9)}",
            **d.some({
                "schedule": lambda: f"{d.randint(0, 59)} {d.randint(0, 23)} * * 1-5",
                "ticket": lambda: f"OPS-{d.randint(1, 99999)}",
                "ip_allow": lambda: d.list(1, 6, lambda: f"10.{d.randint(0, 255)}.{d.randint(0, 255)}.0/24"),
                "colour": lambda: "#" + d.hex(6),
                "memory": lambda: f"{d.randint(64, 4096)}Mi",
                "duration": lambda: f"{d.randint(1, 5)}h{d.randint(0, 59)}m",
                "labels": lambda: {f"app.example.com/{d.word()}": d.word() for _ in range(4)},
                "env": lambda: {d.word().upper(): d.text(1, 4) for _ in range(5)},
            }, 0.7)}


def unevaluated(d):
    rule = {"id": d.uuid(), "name": d.text(1, 5), "enabled": d.chance(0.5), "priority": d.randint(0, 9),
            "created_by": d.name(), "created_at": d.randint(10**9, 2 * 10**9)}
    attachment = lambda: {"name": d.word() + ".pdf", "bytes": d.randint(1, 10**6), "media_type": "application/pdf"}
    rule.update(d.choice([
        lambda: {"channel": "email", "to": d.list(1, 4, d.email), "subject": d.text(2, 6), "attachments": d.list(0, 3, attachment)},
        lambda: {"channel": "sms", "number": f"+41{d.randint(10**8, 10**9 - 1)}"},
        lambda: {"channel": "webhook", "url": d.url(), "headers": {"X-A": d.word()}},
        lambda: {"channel": "push", "device_ids": d.list(1, 10, lambda: d.randint(1, 10**6))},
    ])())
    rule.update(d.choice([{"schedule": "cron", "cron": "0 5 * * *"}, {"schedule": "interval", "every_minutes": d.randint(1, 60)}, {}]))
    if d.chance(0.4):
        rule.update({"retry": True, "max_attempts": d.randint(1, 5), "backoff_ms": 250})
    if d.chance(0.5):
        rule["tags"] = d.list(1, 4, d.word)
    return rule
