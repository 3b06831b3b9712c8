"""A small S3 server on loopback, in memory, that counts requests and fails on demand.

It speaks the part of the S3 protocol that storage needs: list, head, get with ranges, put, multipart uploads, copy and
delete. Signatures are not verified, only the name of the access key.
"""

import hashlib
import re
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS_KEY, SECRET_KEY = "test-access-key", "test-secret-key"
PAGE = 1000


class S3Server:
    """Buckets of objects: bucket -> key -> (content, time, ETag).

    requests:  number of requests by operation
    fail_next: answers the next requests whose operation matches with 503; operation -> how many
    deny:      answers requests for which it is true with 403; operation, key, query -> bool
    hide_md5:  gives ETags that are no MD5, as for encrypted objects
    cut:       closes the connection in the middle of the body of so many uploads
    hold_after: operation -> after so many requests, do not answer until `release` is set; `held`: one is waiting
    """

    def __init__(self, *buckets):
        self.buckets = {name: {} for name in buckets}
        self.uploads = {}
        self.requests, self.fail_next = Counter(), Counter()
        self.deny = lambda operation, key, query: False
        self.hide_md5 = False
        self.cut = 0
        self.hold_after = {}
        self.held, self.release = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"s3": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    def environment(self, cache):
        """The environment variables of a process that uses this server, with its cache folder."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
            "ECGQUORUM_CACHE": str(cache),
        }

    def put(self, bucket, key, content):
        etag = hashlib.md5(content + b"key" * self.hide_md5, usedforsecurity=False).hexdigest()
        with self.lock:
            self.buckets[bucket][key] = (bytes(content), time.time(), etag)

    def put_folder(self, bucket, prefix, folder):
        for path in folder.rglob("*"):
            if path.is_file():
                self.put(bucket, f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def keys(self, bucket, prefix=""):
        with self.lock:
            return sorted(key for key in self.buckets[bucket] if key.startswith(prefix))

    def content(self, bucket, key):
        return self.buckets[bucket][key][0]

    def take_failure(self, operation):
        with self.lock:
            for name in (operation, "*"):
                if self.fail_next[name] > 0:
                    self.fail_next[name] -= 1
                    return True
        return False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or else answers wait 40 ms for an acknowledgement
    s3: S3Server

    def log_message(self, *_):
        pass

    def _route(self):
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        operation = self._operation(key, query)
        with self.s3.lock:
            self.s3.requests[operation] += 1
        body = self._body(operation)
        if body is None:
            return None
        if self.s3.requests[operation] > self.s3.hold_after.get(operation, 1 << 60):
            self.s3.held.set()
            self.s3.release.wait(120)
        if self.s3.take_failure(operation):
            return self._error(503, "SlowDown", "Please reduce your request rate.")
        is_known = f"Credential={ACCESS_KEY}/" in self.headers.get("Authorization", "")
        if not is_known or self.s3.deny(operation, key, query):
            return self._error(403, "AccessDenied", "Access Denied")
        if bucket not in self.s3.buckets:
            return self._error(404, "NoSuchBucket", "The specified bucket does not exist")
        return getattr(self, f"_{operation}")(self.s3.buckets[bucket], key, query, body)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _route  # noqa: N815 (names of the standard library)

    def _operation(self, key, query):
        if not key:
            return {"GET": "list", "HEAD": "head_bucket", "POST": "delete_many"}.get(self.command, "other")
        if "uploads" in query:
            return "begin_upload"
        if "uploadId" in query:
            return {"PUT": "upload_part", "POST": "end_upload", "DELETE": "abort_upload"}[self.command]
        if self.command == "PUT" and "x-amz-copy-source" in self.headers:
            return "copy"
        return {"GET": "get", "HEAD": "head", "PUT": "put", "DELETE": "delete"}[self.command]

    def _body(self, operation):
        length = int(self.headers.get("Content-Length") or 0)
        if operation in ("put", "upload_part") and self.s3.cut > 0:
            with self.s3.lock:
                self.s3.cut -= 1
            self.rfile.read(length // 2)
            self.close_connection = True
            self.connection.close()
            return None
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        body = self._dechunk() if chunked else self.rfile.read(length)
        return _strip_chunks(body) if "aws-chunked" in self.headers.get("Content-Encoding", "") else body

    def _dechunk(self):
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _answer(self, status, content=b"", headers=()):
        self.send_response(status)
        headers = dict(headers)
        headers.setdefault("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _xml(self, text):
        content = f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()
        self._answer(200, content, {"Content-Type": "application/xml"})

    def _error(self, status, code, message):
        text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
        self._answer(status, text.encode(), {"Content-Type": "application/xml"})

    def _head_bucket(self, bucket, key, query, body):
        self._answer(200, headers={"x-amz-bucket-region": "us-east-1"})

    def _list(self, bucket, key, query, body):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after, limit = query.get("continuation-token", ""), int(query.get("max-keys") or PAGE)
        with self.s3.lock:
            keys = sorted(one for one in bucket if one.startswith(prefix) and one > after)
        folders, files = {}, []
        for one in keys[:limit]:
            rest = one[len(prefix) :]
            if delimiter and delimiter in rest:
                folders[prefix + rest.split(delimiter)[0] + delimiter] = None
            else:
                files.append(one)
        more = len(keys) > limit
        text = "".join(
            f"<Contents><Key>{escape(one)}</Key><LastModified>{_iso(bucket[one][1])}</LastModified>"
            f'<ETag>"{bucket[one][2]}"</ETag><Size>{len(bucket[one][0])}</Size></Contents>'
            for one in files
        )
        text += "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders)
        token = f"<NextContinuationToken>{escape(keys[limit - 1])}</NextContinuationToken>" if more else ""
        self._xml(
            f"<ListBucketResult><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(files) + len(folders)}</KeyCount>"
            f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{str(more).lower()}</IsTruncated>{token}{text}</ListBucketResult>"
        )

    def _head(self, bucket, key, query, body):
        if key not in bucket:
            return self._answer(404)
        content, when, etag = bucket[key]
        headers = {
            "Content-Length": str(len(content)),
            "ETag": f'"{etag}"',
            "Last-Modified": formatdate(when, usegmt=True),
        }
        return self._answer(200, headers=headers)

    def _get(self, bucket, key, query, body):
        if key not in bucket:
            return self._error(404, "NoSuchKey", "The specified key does not exist.")
        content, when, etag = bucket[key]
        headers = {"ETag": f'"{etag}"', "Last-Modified": formatdate(when, usegmt=True)}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not asked:
            return self._answer(200, content, headers)
        first, last = int(asked[1]), min(int(asked[2] or len(content)), len(content) - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return self._answer(206, content[first : last + 1], headers)

    def _put(self, bucket, key, query, body):
        name = next(name for name, one in self.s3.buckets.items() if one is bucket)
        self.s3.put(name, key, body)
        self._answer(200, headers={"ETag": f'"{bucket[key][2]}"'})

    def _copy(self, bucket, key, query, body):
        source, _, from_key = unquote(self.headers["x-amz-copy-source"]).lstrip("/").partition("/")
        found = self.s3.buckets.get(source, {}).get(from_key)
        if found is None:
            return self._error(404, "NoSuchKey", "The specified key does not exist.")
        with self.s3.lock:
            bucket[key] = (found[0], time.time(), found[2])
        when = _iso(bucket[key][1])
        return self._xml(
            f'<CopyObjectResult><ETag>"{found[2]}"</ETag><LastModified>{when}</LastModified></CopyObjectResult>'
        )

    def _begin_upload(self, bucket, key, query, body):
        with self.s3.lock:
            number = f"upload-{len(self.s3.uploads)}"
            self.s3.uploads[number] = {}
        self._xml(
            f"<InitiateMultipartUploadResult><Key>{escape(key)}</Key><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
        )

    def _upload_part(self, bucket, key, query, body):
        self.s3.uploads[query["uploadId"]][int(query["partNumber"])] = body
        self._answer(200, headers={"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'})

    def _end_upload(self, bucket, key, query, body):
        parts = self.s3.uploads.pop(query["uploadId"])
        digests = b"".join(hashlib.md5(parts[n], usedforsecurity=False).digest() for n in sorted(parts))
        etag = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"
        with self.s3.lock:
            bucket[key] = (b"".join(parts[n] for n in sorted(parts)), time.time(), etag)
        self._xml(
            f'<CompleteMultipartUploadResult><Key>{escape(key)}</Key><ETag>"{etag}"</ETag></CompleteMultipartUploadResult>'
        )

    def _abort_upload(self, bucket, key, query, body):
        self.s3.uploads.pop(query["uploadId"], None)
        self._answer(204)

    def _delete(self, bucket, key, query, body):
        with self.s3.lock:
            bucket.pop(key, None)
        self._answer(204)

    def _delete_many(self, bucket, key, query, body):
        for found in re.findall(rb"<Key>(.*?)</Key>", body):
            bucket.pop(found.decode(), None)
        self._xml("<DeleteResult></DeleteResult>")


def _strip_chunks(body):
    """The content of an aws-chunked body."""
    content = b""
    while body:
        line, _, body = body.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        if not size:
            break
        content, body = content + body[:size], body[size + 2 :]
    return content


def _iso(when):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(when))
