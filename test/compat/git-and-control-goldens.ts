import { type GoldenGroup, detail, EMPTY, unprocessable, MISSING_PATH, ok } from './golden.ts'

const DAY = '2024-01-02T03:04:05Z'
const COMMIT = `GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_DATE=${DAY} GIT_COMMITTER_DATE=${DAY} git -c user.name=n -c user.email=e@x -c commit.gpgsign=false commit -q`

export const REPOSITORY: GoldenGroup = {
  title: 'a repository',
  script: `${EMPTY}
    export HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1; git init -q -b main .
    mkdir src; printf 'one\\ntwo\\n' > changed.txt; printf g > gone.txt; printf 'rename me, I am long enough\\n' > before.txt
    printf 'x\\377' > bytes.bin; printf s > 'src/a b.txt'; printf i > staged.txt; printf c > conflict.txt
    git add -A; ${COMMIT} -m first
    git checkout -q -b other; printf theirs > conflict.txt; ${COMMIT} -a -m theirs
    git checkout -q main; printf ours > conflict.txt; ${COMMIT} -a -m ours
    git -c user.name=n -c user.email=e@x merge -q other >/dev/null 2>&1
    printf 'one\\n2\\n' > changed.txt; rm gone.txt; git mv before.txt after.txt; printf j > staged.txt; git add staged.txt
    printf n > new.txt; git add new.txt; printf u > untracked.txt; mkdir fresh; printf f > fresh/file; printf t > 'src/a b.txt'`,
  goldens: [
    ok(
      'GET /api/git/status',
      '{"is_repo":true,"available":true,"files":{"after.txt":"M","changed.txt":"M","conflict.txt":"C","gone.txt":"D","new.txt":"A","src/a b.txt":"M","staged.txt":"M","fresh/":"U","untracked.txt":"U"}}',
    ),
    ok(
      'GET /api/git/diff?path=changed.txt',
      String.raw`{"diff":"diff --git a/changed.txt b/changed.txt\nindex 814f4a4..99b356d 100644\n--- a/changed.txt\n+++ b/changed.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n","path":"changed.txt"}`,
    ),
    ok('GET /api/git/diff?path=untracked.txt', '{"diff":"","path":"untracked.txt"}'),
    ok('GET /api/git/diff?path=nowhere', '{"diff":"","path":"nowhere"}'),
    detail('GET /api/git/diff?path=../x', 400, 'Path traversal detected: ../x'),
    unprocessable('GET /api/git/diff', MISSING_PATH),
    ok('GET /api/git/show?path=changed.txt', String.raw`{"content":"one\ntwo\n","path":"changed.txt"}`),
    ok('GET /api/git/show?path=src/a%20b.txt', '{"content":"s","path":"src/a b.txt"}'),
    ok('GET /api/git/show?path=gone.txt', '{"content":"g","path":"gone.txt"}'),
    ok('GET /api/git/show?path=new.txt', '{"content":null,"path":"new.txt","error":"Not in HEAD"}'),
    ok('GET /api/git/show?path=bytes.bin', '{"content":null,"path":"bytes.bin","error":"Binary file"}'),
    detail('GET /api/git/show?path=../x', 400, 'Path traversal detected: ../x'),
    unprocessable('GET /api/git/show', MISSING_PATH),
  ],
}

const FEATURES =
  '{"files":true,"git":true,"pty":true,"chat_claude_code":$CLAUDE,"stream":$CLAUDE,"approval":false,"sandbox":$SANDBOXED}'

/** Responses of control itself. `$MODE`, `$SANDBOXED` and `$CLAUDE` depend on the server. */
export const CONTROL: GoldenGroup = {
  title: 'routes that control answers itself',
  goldens: [
    ok('GET /api/sessions', '{"sessions":[]}'),
    ok('POST /api/sessions', '{"session_id":"$UUID"}'),
    ok(
      'GET /api/capabilities',
      `{"version":"0.1.0","features":${FEATURES},"routers":[{"name":"files","prefix":"/api","description":"$TEXT","tags":["files"],"enabled":true},{"name":"git","prefix":"/api/git","description":"$TEXT","tags":["git"],"enabled":true},{"name":"pty","prefix":"/ws","description":"$TEXT","tags":["pty"],"enabled":true},{"name":"chat_claude_code","prefix":"/ws","description":"$TEXT","tags":["chat_claude_code"],"enabled":$CLAUDE},{"name":"approval","prefix":"/api/approval","description":"$TEXT","tags":["approval"],"enabled":false}]}`,
    ),
    ok(
      'GET /api/config',
      '{"workspace_root":"/workspace","workspace_mode":"$MODE","pty_providers":["shell"],"paths":{"files":"."}}',
    ),
    ok(
      'GET /api/config?config_path=app.config.json',
      '{"workspace_root":"/workspace","workspace_mode":"$MODE","pty_providers":["shell"],"paths":{"files":"."}}',
    ),
    ok('GET /api/project', '{"root":"/workspace"}'),
    ok(
      'GET /health',
      `{"status":"ok","version":"$TEXT","workspace":"/workspace","workspace_mode":"$MODE","features":${FEATURES}}`,
    ),
    detail('GET /api/tree?sandbox=nobodys', 404, 'No sandbox has this id or name'),
  ],
}
