import { expect, test } from 'bun:test'
import { formatComments, splitPatch } from './patch-files.ts'

const PATCH = `diff --git a/a b/c.txt b/a b/c.txt
index 1..2 100644
--- a/a b/c.txt
+++ b/a b/c.txt
@@ -1,3 +1,3 @@ head
 one
-two
+2
 three
\\ No newline at end of file
diff --git a/old b/new
similarity index 100%
rename from old
rename to new
diff --git "a/\\303\\274" "b/\\303\\274"
new file mode 100644
--- /dev/null
+++ "b/\\303\\274"
@@ -0,0 +1 @@
+diff --git a/x b/x
`

test('splits a patch by file, with line numbers', () => {
  const files = splitPatch(PATCH)
  expect(files.map(({ path, added, removed }) => [path, added, removed])).toEqual([
    ['a b/c.txt', 1, 1],
    ['new', 0, 0],
    ['\\303\\274', 1, 0],
  ])
  expect(files[0]?.lines.map(({ kind, line, text }) => [kind, line, text])).toEqual([
    ['hunk', undefined, '@@ -1,3 +1,3 @@ head'],
    ['same', 1, 'one'],
    ['removed', 2, 'two'],
    ['added', 2, '2'],
    ['same', 3, 'three'],
    ['note', undefined, 'No newline at end of file'],
  ])
  // A line that looks like a header is content.
  expect(files[2]?.lines.at(-1)).toEqual({ kind: 'added', line: 1, text: 'diff --git a/x b/x' })
})

test('comments become one message', () => {
  expect(
    formatComments([
      { path: 'a.ts', line: 3, isOld: false, text: 'Use const' },
      { path: 'a.ts', line: 9, isOld: true, text: 'Why?' },
    ]),
  ).toBe('a.ts:3: Use const\n\na.ts:9 (removed line): Why?')
})
