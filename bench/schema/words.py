# SPDX-License-Identifier: Apache-2.0
"""Small seeded pieces that the instance generators share."""

import random

WORDS = (
    "alpha beta gamma delta report budget quarter invoice customer meeting project release "
    "search index table column value record update delete insert select change review draft "
    "final north south east west green blue orange river mountain harbour market station garden "
    "engine window mirror letter number garlic pepper basil thyme copper silver golden marble"
).split()
UNICODE = ["Zürich", "Malmö", "naïve café", "東京", "résumé", "Łódź", "São Paulo", "emoji 🙂", "Ωmega"]


class Dice(random.Random):
    """random.Random with the throws that documents are made of."""

    def word(self):
        return self.choice(WORDS)

    def words(self, low, high):
        return " ".join(self.word() for _ in range(self.randint(low, high)))

    def text(self, low, high):
        """A sentence; now and then with what needs care: accents, quotes, line ends."""
        text = self.words(low, high)
        throw = self.random()
        if throw < 0.12:
            text += " " + self.choice(UNICODE)
        elif throw < 0.2:
            text = text.replace(" ", '\n', 1) + ' "' + self.word() + '"'
        return text

    def chance(self, p):
        return self.random() < p

    def some(self, choices, p):
        """An object with each optional member present with probability p."""
        return {name: make() for name, make in choices.items() if self.random() < p}

    def list(self, low, high, make):
        return [make() for _ in range(self.randint(low, high))]

    def hex(self, n):
        return "".join(self.choice("0123456789abcdef") for _ in range(n))

    def uuid(self):
        h = self.hex(32)
        return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"

    def date(self):
        return f"20{self.randint(10, 29)}-{self.randint(1, 12):02}-{self.randint(1, 28):02}"

    def instant(self):
        zone = self.choice(["Z", "Z", "+02:00", "-07:30"])
        return (f"{self.date()}T{self.randint(0, 23):02}:{self.randint(0, 59):02}:"
                f"{self.randint(0, 59):02}{zone}")

    def money(self):
        """A price in cents, written with at most two decimals."""
        return self.randint(1, 99999) / 100

    def decimal(self, low, high, digits):
        return round(self.uniform(low, high), digits)

    def name(self):
        return self.word().capitalize() + " " + self.word().capitalize()

    def email(self):
        return f"{self.word()}.{self.word()}{self.randint(1, 99)}@{self.word()}.example.com"

    def url(self):
        return f"https://{self.word()}.example.com/{self.word()}/{self.word()}?id={self.randint(1, 9999)}"

    def ident(self):
        return f"{self.word()}-{self.word()}-{self.randint(1, 999)}"
