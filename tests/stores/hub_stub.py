"""What it takes of the Hugging Face hub to upload a folder and download it, on a local port."""

import base64
import contextlib
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Hub(ThreadingHTTPServer):
    """One repository: its commits, each the files by their paths, and its large objects.

    A file is whether it is large, and its content.
    """

    def __init__(self, name, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.name = name
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.objects, self.commits = {}, []
        # The first is there in every new repository of the hub.
        self._add({".gitattributes": (False, b"*.safetensors filter=lfs"), **files})

    def commit(self, lines):
        files = dict(self.commits[-1][1])
        for line in map(json.loads, lines):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = (False, base64.b64decode(value["content"]))
            elif line["key"] == "lfsFile":
                files[value["path"]] = (True, self.objects[value["oid"]])
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        self._add(files)

    def _add(self, files):
        self.commits.append((hashlib.sha1(repr(files).encode()).hexdigest(), files))

    def files(self, revision):
        found = dict(self.commits)
        return found[self.commits[-1][0] if revision == "main" else revision]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length)
        path = unquote(urlsplit(self.path).path)
        for (command, pattern), method in ROUTES.items():
            found = re.fullmatch(pattern.replace("REPO", self.server.name), path)
            if found and command == self.command:
                return method(self, *found.groups())
        return self.send(404, {"error": "Not found"})

    do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815 (names that http.server looks for)

    def send(self, status, content=b"", **headers):
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
            headers["Content-Type"] = "application/json"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def create(self):
        self.send(200, {"url": f"{self.server.url}/{self.server.name}"})

    def check_card(self):
        self.send(200, {"errors": [], "warnings": []})

    def say_how(self, _):
        names = [one["path"] for one in json.loads(self.body)["files"]]
        modes = {False: "regular", True: "lfs"}
        told = [
            {"path": one, "uploadMode": modes[one.endswith(".safetensors")], "shouldIgnore": False}
            for one in names
        ]
        self.send(200, {"files": told})

    def say_where(self):
        told = [
            {**one, "actions": {"upload": {"href": f"{self.server.url}/objects/{one['oid']}"}}}
            for one in json.loads(self.body)["objects"]
        ]
        self.send(200, {"transfer": "basic", "objects": told})

    def store(self, oid):
        assert hashlib.sha256(self.body).hexdigest() == oid
        self.server.objects[oid] = self.body
        self.send(200)

    def commit(self, _):
        self.server.commit(self.body.splitlines())
        oid = self.server.commits[-1][0]
        url = f"{self.server.url}/{self.server.name}/commit/{oid}"
        self.send(200, {"commitUrl": url, "commitOid": oid})

    def info(self, revision="main"):
        names = [{"rfilename": one} for one in self.server.files(revision)]
        told = {"id": self.server.name, "sha": self.server.commits[-1][0], "siblings": names}
        self.send(200, told)

    def tree(self, revision):
        told = []
        for name, (large, content) in self.server.files(revision).items():
            one = {"type": "file", "path": name, "size": len(content), "oid": blob(content)}
            if large:
                oid = hashlib.sha256(content).hexdigest()
                one["lfs"] = {"oid": oid, "size": len(content), "pointerSize": 130}
            told.append(one)
        self.send(200, told)

    def resolve(self, revision, name):
        large, content = self.server.files(revision)[name]
        etag = hashlib.sha256(content).hexdigest() if large else blob(content)
        self.send(200, content, ETag=f'"{etag}"', X_Repo_Commit=revision)


def blob(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


ROUTES = {
    ("POST", "/api/repos/create"): Handler.create,
    ("POST", "/api/validate-yaml"): Handler.check_card,
    ("POST", "/api/models/REPO/preupload/(.*)"): Handler.say_how,
    ("POST", r"/REPO\.git/info/lfs/objects/batch"): Handler.say_where,
    ("PUT", "/objects/(.*)"): Handler.store,
    ("POST", "/api/models/REPO/commit/(.*)"): Handler.commit,
    ("GET", "/api/models/REPO"): Handler.info,
    ("GET", "/api/models/REPO/revision/(.*)"): Handler.info,
    ("GET", "/api/models/REPO/tree/([^/]*)"): Handler.tree,
    ("GET", "/REPO/resolve/([^/]*)/(.*)"): Handler.resolve,
    ("HEAD", "/REPO/resolve/([^/]*)/(.*)"): Handler.resolve,
}


@contextlib.contextmanager
def running(name, files):
    """Serve a repository with these files in its first commit."""
    with Hub(name, files) as hub:
        thread = threading.Thread(target=hub.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
