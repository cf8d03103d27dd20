import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually, isAlive, rejectionOf } from '@sandwire/testing'
import { startSandboxd } from './sandboxd.ts'

/** Starts like sandboxd: listens, prints ready, logs JSON, removes its secret, exits on SIGTERM. */
const STAND_IN = `
import { readFileSync, statSync, unlinkSync } from "node:fs";
const option = (name) => process.argv[process.argv.indexOf(name) + 1];
const file = option("--secret-file");
const mode = (statSync(file).mode & 0o777).toString(8);
const secret = readFileSync(file, "utf8");
unlinkSync(file);
if (process.argv.includes("--fail")) { console.error("no luck"); process.exit(3); }
if (process.argv.includes("--silent")) await new Promise(() => setInterval(() => {}, 1000));
const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => Response.json({
  authorized: request.headers.get("authorization") === "Bearer " + secret,
  workspace: option("--workspace"), extra: process.env.EXTRA, mode,
}) });
process.on("SIGTERM", () => process.exit(0));
console.error(JSON.stringify({ level: "info", message: "listening" }));
console.error("not json");
console.log(JSON.stringify({ type: "ready", url: "http://127.0.0.1:" + server.port, version: "0.0.1" }));
`

describe('startSandboxd', () => {
  let directory = ''
  let program: string[] = []

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sandwire-stand-in-'))
    program = [process.execPath, join(directory, 'main.ts')]
    await writeFile(join(directory, 'main.ts'), STAND_IN)
  })

  afterAll(() => rm(directory, { recursive: true }))

  test('waits for ready, fetches with the secret and collects the log', async () => {
    await using sandboxd = await startSandboxd({ program, env: { EXTRA: 'yes' } })
    const answer: unknown = await (await sandboxd.fetch('/health')).json()
    expect(answer).toEqual({ authorized: true, workspace: sandboxd.workspace, extra: 'yes', mode: '600' })
    expect(await (await sandboxd.fetch('/', { headers: { authorization: 'x' } })).json()).toMatchObject({
      authorized: false,
    })
    expect(sandboxd).toMatchObject({ version: '0.0.1', url: `http://127.0.0.1:${sandboxd.port}` })
    expect(sandboxd.socketUrl('/attach?cmd=cat')).toBe(`ws://127.0.0.1:${sandboxd.port}/attach?cmd=cat`)
    await eventually(() => sandboxd.logs().length === 2, { what: 'two log lines' })
    expect(sandboxd.logs()).toEqual([{ level: 'info', message: 'listening' }, 'not json'])
  })

  test('stops the program and removes its own workspace', async () => {
    const sandboxd = await startSandboxd({ program })
    expect(await sandboxd.stop()).toEqual({ code: 0, signal: null })
    expect(isAlive(sandboxd.pid)).toBe(false)
    expect((await rejectionOf(stat(sandboxd.workspace))).message).toContain('ENOENT')
  })

  test('keeps a workspace that it did not create', async () => {
    const sandboxd = await startSandboxd({ program, workspace: directory })
    await sandboxd.stop()
    expect(await readFile(join(directory, 'main.ts'), 'utf8')).toBe(STAND_IN)
  })

  test('reports the signal that killed the program', async () => {
    await using sandboxd = await startSandboxd({ program })
    sandboxd.kill('SIGKILL')
    expect(await sandboxd.exited).toEqual({ code: null, signal: 'SIGKILL' })
  })

  test('fails with the log when the program exits or prints nothing', async () => {
    expect((await rejectionOf(startSandboxd({ program, args: ['--fail'] }))).message).toContain(
      'it ended with "3"\nno luck',
    )
    expect(
      (await rejectionOf(startSandboxd({ program, args: ['--silent'], readyTimeoutMs: 50 }))).message,
    ).toContain('not ready after 50 ms')
  })
})
