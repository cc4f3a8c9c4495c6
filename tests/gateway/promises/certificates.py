# SPDX-License-Identifier: Apache-2.0
"""Certificates that openssl makes on the spot, in the folder of a test."""

import os
import socket
import subprocess

import grpc

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Certificates:
    """CA.pem; and NAME.pem with NAME.key for whoever it was asked to sign."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def make_ca(self, name="ca"):
        self.openssl("req", "-x509", *NEW_KEY, "-keyout", self.path(name + ".key"), "-out",
                     self.path(name + ".pem"), "-days", "2", "-subj", "/CN=test " + name)
        return self

    def sign(self, name, ca="ca", alternatives=None):
        """A client called `name`, or a server with alternatives."""
        with open(self.path(name + ".ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={alternatives or 'DNS:' + name}\n")
        self.openssl("req", *NEW_KEY, "-keyout", self.path(name + ".key"), "-out",
                     self.path(name + ".csr"), "-subj", "/CN=" + name)
        self.openssl("x509", "-req", "-in", self.path(name + ".csr"), "-CA",
                     self.path(ca + ".pem"), "-CAkey", self.path(ca + ".key"), "-CAcreateserial",
                     "-days", "2", "-extfile", self.path(name + ".ext"), "-out",
                     self.path(name + ".pem"))
        return self

    def sign_server(self, name="server", ca="ca"):
        addresses = {"127.0.0.1", own_address() or "127.0.0.1"}
        return self.sign(name, ca, ",".join(["DNS:localhost", *("IP:" + a for a in addresses)]))

    def credentials(self, name=None, ca="ca"):
        """For a channel; without a name it has no certificate to show."""
        if not name:
            return grpc.ssl_channel_credentials(self.read(ca + ".pem"))
        return grpc.ssl_channel_credentials(self.read(ca + ".pem"), self.read(name + ".key"),
                                            self.read(name + ".pem"))


def own_address():
    """Of this machine, beside loopback; None if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it only finds the way out
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address
