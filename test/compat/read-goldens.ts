import { type GoldenGroup, detail, EMPTY, unprocessable, json, MISSING_PATH, ok } from './golden.ts'

export const EMPTY_FOLDER: GoldenGroup = {
  title: 'an empty folder without a repository',
  script: EMPTY,
  goldens: [
    ok('GET /api/tree', '{"entries":[],"path":"."}'),
    ok('GET /api/search?q=*', '{"results":[],"pattern":"*","path":"."}'),
    ok('GET /api/git/status', '{"is_repo":false,"files":[]}'),
    ok('GET /api/git/diff?path=a.txt', '{"diff":"","path":"a.txt","error":"Git error: $TEXT"}'),
    ok('GET /api/git/show?path=a.txt', '{"content":null,"path":"a.txt","error":"Not in HEAD"}'),
  ],
}

export const READS: GoldenGroup = {
  title: 'reads',
  script: `${EMPTY}
    mkdir -p src/deep Docs empty
    printf '# Title\\n' > README.md; printf 'print()' > src/main.py; : > nothing.txt
    printf 'a\\r\\n\\303\\244 \\360\\237\\246\\234 "q" \\\\ \\t' > mixed.txt; printf 'x\\377' > bytes.bin; printf 'a\\000b' > nul.txt
    ln -s src a-link; ln -s README.md b-link; ln -s missing c-link; ln -s /etc out-link; mkfifo pipe
    : > src/deep/README.py; : > src/deep/readme.md`,
  goldens: [
    ok(
      'GET /api/tree',
      '{"entries":[{"name":"a-link","path":"a-link","is_dir":true},{"name":"Docs","path":"Docs","is_dir":true},{"name":"empty","path":"empty","is_dir":true},{"name":"src","path":"src","is_dir":true},{"name":"b-link","path":"b-link","is_dir":false,"size":8},{"name":"bytes.bin","path":"bytes.bin","is_dir":false,"size":2},{"name":"c-link","path":"c-link","is_dir":false},{"name":"mixed.txt","path":"mixed.txt","is_dir":false,"size":18},{"name":"nothing.txt","path":"nothing.txt","is_dir":false,"size":0},{"name":"nul.txt","path":"nul.txt","is_dir":false,"size":3},{"name":"out-link","path":"out-link","is_dir":false},{"name":"pipe","path":"pipe","is_dir":false},{"name":"README.md","path":"README.md","is_dir":false,"size":8}],"path":"."}',
    ),
    ok(
      'GET /api/tree?path=src',
      '{"entries":[{"name":"deep","path":"src/deep","is_dir":true},{"name":"main.py","path":"src/main.py","is_dir":false,"size":7}],"path":"src"}',
    ),
    ok(
      'GET /api/tree?path=./src/',
      '{"entries":[{"name":"deep","path":"src/deep","is_dir":true},{"name":"main.py","path":"src/main.py","is_dir":false,"size":7}],"path":"./src/"}',
    ),
    ok('GET /api/tree?path=empty', '{"entries":[],"path":"empty"}'),
    ok('GET /api/tree?path=missing', '{"entries":[],"path":"missing"}'),
    detail('GET /api/tree?path=README.md', 400, 'Path is not a directory: README.md'),
    detail('GET /api/tree?path=..', 400, 'Path traversal detected: ..'),
    detail('GET /api/tree?path=out-link', 400, 'Path traversal detected: out-link'),
    detail('GET /api/tree?path=/etc', 400, 'Path traversal detected: /etc'),
    ok('GET /api/file?path=README.md', String.raw`{"content":"# Title\n","path":"README.md"}`),
    ok('GET /api/file?path=src%2Fmain.py', '{"content":"print()","path":"src/main.py"}'),
    ok('GET /api/file?path=b-link', String.raw`{"content":"# Title\n","path":"b-link"}`),
    ok('GET /api/file?path=nothing.txt', '{"content":"","path":"nothing.txt"}'),
    ok('GET /api/file?path=mixed.txt', '{"content":"a\\r\\nä 🦜 \\"q\\" \\\\ \\t","path":"mixed.txt"}'),
    detail('GET /api/file?path=gone.txt', 404, 'File not found: gone.txt'),
    detail('GET /api/file?path=README.md/x', 404, 'File not found: README.md/x'),
    detail('GET /api/file?path=src', 400, 'Path is a directory: src'),
    detail('GET /api/file?path=..%2F..%2Fetc%2Fpasswd', 400, 'Path traversal detected: ../../etc/passwd'),
    detail('GET /api/file?path=out-link/passwd', 400, 'Path traversal detected: out-link/passwd'),
    detail('GET /api/file?path=bytes.bin', 415, 'File is not text: bytes.bin'),
    detail('GET /api/file?path=nul.txt', 415, 'File is not text: nul.txt'),
    unprocessable('GET /api/file', MISSING_PATH),
    ok(
      'GET /api/search?q=readme*',
      '{"results":[{"name":"readme.md","path":"src/deep/readme.md","dir":"src/deep"},{"name":"README.py","path":"src/deep/README.py","dir":"src/deep"},{"name":"README.md","path":"README.md","dir":""}],"pattern":"readme*","path":"."}',
    ),
    ok(
      'GET /api/search?q=*.PY&path=src',
      '{"results":[{"name":"README.py","path":"src/deep/README.py","dir":"src/deep"},{"name":"main.py","path":"src/main.py","dir":"src"}],"pattern":"*.PY","path":"src"}',
    ),
    ok(
      'GET /api/search?q=d?[e]p',
      '{"results":[{"name":"deep","path":"src/deep","dir":"src"}],"pattern":"d?[e]p","path":"."}',
    ),
    ok('GET /api/search?q=main', '{"results":[],"pattern":"main","path":"."}'),
    ok('GET /api/search?q=*&path=missing', '{"results":[],"pattern":"*","path":"missing"}'),
    detail('GET /api/search?q=*&path=..', 400, 'Path traversal detected: ..'),
    unprocessable(
      'GET /api/search?q=',
      '{"type":"string_too_short","loc":["query","q"],"msg":"String should have at least 1 character","input":"","ctx":{"min_length":1}}',
    ),
    unprocessable(
      'GET /api/search',
      '{"type":"missing","loc":["query","q"],"msg":"Field required","input":null}',
    ),
  ],
}

export const UNUSUAL_NAMES: GoldenGroup = {
  title: 'names that file systems allow',
  script: `${EMPTY}
    printf 1 > 'a b'; printf 2 > "$(printf 'new\\nline')"; printf 3 > 'parrot 🦜'; printf 4 > ./-rf; printf 5 > "$(printf 'x\\377y')"
    printf 6 > '100%'; printf 7 > 'q?*[a]'; printf 8 > '"quoted\\'`,
  goldens: [
    ok('GET /api/file?path=a%20b', '{"content":"1","path":"a b"}'),
    ok('GET /api/file?path=a+b', '{"content":"1","path":"a b"}'),
    ok('GET /api/file?path=new%0Aline', String.raw`{"content":"2","path":"new\nline"}`),
    ok('GET /api/file?path=parrot%20%F0%9F%A6%9C', '{"content":"3","path":"parrot 🦜"}'),
    ok('GET /api/file?path=-rf', '{"content":"4","path":"-rf"}'),
    ok('GET /api/file?path=x%FFy', String.raw`{"content":"5","path":"x\udcffy"}`),
    ok('GET /api/file?path=100%25', '{"content":"6","path":"100%"}'),
    ok(
      'GET /api/search?q=x*y',
      String.raw`{"results":[{"name":"x\udcffy","path":"x\udcffy","dir":""}],"pattern":"x*y","path":"."}`,
    ),
    ok(
      'GET /api/tree',
      '{"entries":[{"name":"\\"quoted\\\\","path":"\\"quoted\\\\","is_dir":false,"size":1},{"name":"-rf","path":"-rf","is_dir":false,"size":1},{"name":"100%","path":"100%","is_dir":false,"size":1},{"name":"a b","path":"a b","is_dir":false,"size":1},{"name":"new\\nline","path":"new\\nline","is_dir":false,"size":1},{"name":"parrot 🦜","path":"parrot 🦜","is_dir":false,"size":1},{"name":"q?*[a]","path":"q?*[a]","is_dir":false,"size":1},{"name":"x\\udcffy","path":"x\\udcffy","is_dir":false,"size":1}],"path":"."}',
    ),
    json(
      'POST /api/file/rename',
      String.raw`{"old_path":"x\udcffy","new_path":"-x"}`,
      String.raw`{"success":true,"old_path":"x\udcffy","new_path":"-x"}`,
    ),
    ok('DELETE /api/file?path=new%0Aline', String.raw`{"success":true,"path":"new\nline"}`),
    detail('GET /api/file?path=%1B%5D0%3Bx%07', 404, 'File not found: \ufffd]0;x\ufffd'),
  ],
}
