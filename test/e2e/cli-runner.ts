import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { shellQuote } from '@sandwire/shell-quote'
import type { FaultProxy } from '@sandwire/testing'
import { openFaultProxy } from '@sandwire/testing'
import { type RunningSandboxd, startSandboxd } from './support/sandboxd.ts'
import { signalName } from './support/signal-name.ts'

/** The entry point of the CLI. */
export const MAIN = resolve(import.meta.dir, '../../apps/cli/src/main.ts')

/** A real sandboxd behind a proxy that can fail, and a file that holds its token. */
export interface Target extends AsyncDisposable {
  readonly sandboxd: RunningSandboxd
  readonly proxy: FaultProxy
  readonly tokenFile: string
  /** The command line of the CLI up to its options, straight to sandboxd or through the proxy. */
  readonly argv: (via?: 'direct' | 'proxy') => [string, ...string[]]
}

/** A port that was free a moment ago: the proxy has to know it before sandboxd listens. */
async function findFreePort(): Promise<number> {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response() })
  const { port = 0 } = server
  await server.stop(true)
  return port
}

export async function openTarget(): Promise<Target> {
  const port = await findFreePort()
  const proxy = openFaultProxy({ target: { port } })
  const sandboxd = await startSandboxd({
    args: ['--listen', `127.0.0.1:${port}`, '--host', `127.0.0.1:${proxy.port}`, '--shell', '/bin/bash'],
    // A prompt that a test can wait for.
    env: { HOME: '/nonexistent', SHELL: '/bin/bash' },
  })
  const tokenFile = join(sandboxd.workspace, '..', 'token')
  await writeFile(tokenFile, `${sandboxd.secret}\n`, { mode: 0o600 })
  return {
    sandboxd,
    proxy,
    tokenFile,
    argv: (via = 'direct') => [
      process.execPath,
      MAIN,
      via === 'proxy' ? proxy.url : sandboxd.url,
      '--token-file',
      tokenFile,
    ],
    [Symbol.asyncDispose]: async () => {
      proxy.close()
      await sandboxd.stop()
    },
  }
}

export interface CliRun {
  readonly stdout: Buffer
  readonly stderr: string
  /** As a shell has it. */
  readonly code: number | null
  readonly signal: string | null
}

/** The CLI without a terminal. */
export function startCli(argv: readonly string[], env: Record<string, string | undefined> = {}) {
  return Bun.spawn([...argv], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, SBX_TOKEN: undefined, ...env },
  })
}

/** Waits for the end of a CLI and all it wrote. */
export async function finish(child: ReturnType<typeof startCli>): Promise<CliRun> {
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).bytes(),
    new Response(child.stderr).text(),
  ])
  await child.exited
  return { stdout: Buffer.from(stdout), stderr, code: child.exitCode, signal: signalName(child.signalCode) }
}

/** Waits for the end of a CLI as `finish` does; `output` is what it wrote to stderr so far. */
export function follow(child: ReturnType<typeof startCli>) {
  let stderr = ''
  const reading = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of child.stderr) stderr += decoder.decode(chunk, { stream: true })
  })()
  const done = (async (): Promise<CliRun> => {
    const stdout = Buffer.from(await new Response(child.stdout).bytes())
    await Promise.all([reading, child.exited])
    return { stdout, stderr, code: child.exitCode, signal: signalName(child.signalCode) }
  })()
  return { output: () => stderr, done }
}

/** Runs the CLI to its end with this input. */
export async function runCli(
  argv: readonly string[],
  options: { readonly input?: string | Uint8Array; readonly env?: Record<string, string | undefined> } = {},
): Promise<CliRun> {
  const child = startCli(argv, options.env)
  const done = finish(child)
  if (options.input !== undefined) void child.stdin.write(options.input)
  await child.stdin.end()
  return done
}

/** Runs a bash script in which `cli` runs the CLI with its address. */
export async function runShell(argv: readonly string[], script: string): Promise<CliRun> {
  const child = startCli(['bash', '-c', `cli() { ${argv.map(shellQuote).join(' ')} "$@"; }\n${script}`])
  await child.stdin.end()
  return finish(child)
}
