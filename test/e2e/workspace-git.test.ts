import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'

/** The user `nobody` of Debian. Only root can switch to it. */
const UID = 65_534
const isRoot = process.getuid?.() === 0

let sandboxd: RunningSandboxd
let workspace: string

beforeAll(async () => {
  workspace = mkdtempSync(join(tmpdir(), 'sandwire-git-'))
  Bun.spawnSync(['git', 'init', '--quiet', '--initial-branch=main'], { cwd: workspace })
  writeFileSync(join(workspace, 'file'), 'one\n')
  writeFileSync(join(workspace, '.gitattributes'), 'planted filter=z\n')
  writeFileSync(join(workspace, 'planted'), 'x')
  writeFileSync(join(workspace, 'mark.sh'), `#!/bin/sh\ntouch ${workspace}/marked\n`)
  chmodSync(join(workspace, 'mark.sh'), 0o755)
  for (const key of ['core.fsmonitor', 'filter.z.clean', 'diff.external'])
    Bun.spawnSync(['git', 'config', key, join(workspace, 'mark.sh')], { cwd: workspace })
  const all = readdirSync(workspace, { recursive: true, encoding: 'utf8' })
  if (isRoot) for (const path of ['.', ...all]) lchownSync(join(workspace, path), UID, UID)
  sandboxd = await startSandboxd({ workspace, args: isRoot ? ['--run-as', `${UID}:${UID}`] : [] })
})
afterAll(async () => {
  await sandboxd.stop()
  rmSync(workspace, { recursive: true, force: true })
})

function post(path: string, body: unknown): Promise<Response> {
  return sandboxd.fetch(`/workspace/git/${path}`, { method: 'POST', body: JSON.stringify(body) })
}

test('git runs as the user and starts no program that the repository names (threat T19)', async () => {
  const status = await sandboxd.fetch('/workspace/git/status')
  expect(await status.json()).toMatchObject({ head: { branch: 'main' }, untracked: true })
  expect((await post('stage', { paths: ['file'] })).status).toBe(200)
  expect((await post('stage', { paths: ['planted'] })).status).toBe(409)
  const author = { name: 'Someone', email: 'someone@example.test' }
  expect((await post('commit', { message: 'first', author })).status).toBe(200)
  const log = await sandboxd.fetch('/workspace/git/log')
  expect(await log.json()).toMatchObject({ commits: [{ message: 'first', author }] })
  if (isRoot)
    for (const path of ['.git/index', '.git/refs/heads/main'])
      expect(statSync(join(workspace, path)).uid).toBe(UID)
  expect(existsSync(join(workspace, 'marked'))).toBe(false)
})

test('the compat routes respond with their own errors', async () => {
  const shown = await sandboxd.fetch('/workspace/compat/git/show?path=file')
  expect(await shown.json()).toEqual({ content: 'one\n', path: 'file' })
  const refused = await sandboxd.fetch('/workspace/compat/git/diff?path=../x')
  expect(refused.status).toBe(400)
  expect(await refused.json()).toEqual({ detail: 'Path traversal detected: ../x' })
})
