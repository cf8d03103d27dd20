import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = path.resolve(import.meta.dir, '../..')
/** Oldest Node that wrangler supports. */
const MIN_NODE_MAJOR = 22

export interface WranglerResult {
  readonly isOk: boolean
  readonly stdout: string
  readonly stderr: string
  /** Cloudflare's code of the error, if the command failed with one. */
  readonly errorCode: number | undefined
}

/** The runtime for wrangler: Node when it is new enough, otherwise Bun. wrangler's `bin` refuses an older Node. */
export function findWrangler(): readonly string[] {
  const program = fileURLToPath(import.meta.resolve('wrangler'))
  const node = Bun.which('node')
  if (node === null) return [process.execPath, program]
  const version = Bun.spawnSync([node, '--version'], { stderr: 'ignore' }).stdout.toString()
  const isNew = Number(/^v(\d+)\./.exec(version)?.[1] ?? 0) >= MIN_NODE_MAJOR
  return [isNew ? node : process.execPath, program]
}

export interface WranglerOptions {
  /** Configuration file. */
  readonly config: string
  /** Folder for wrangler's logs. */
  readonly scratch: string
  /** Container engine that builds images. */
  readonly engine?: string | undefined
}

/** The pinned wrangler, non-interactive. */
export class Wrangler {
  readonly #options: WranglerOptions
  readonly #program = findWrangler()

  constructor(options: WranglerOptions) {
    this.#options = options
    mkdirSync(options.scratch, { recursive: true })
  }

  /** Runs a command and captures its output. `input` goes to its standard input, which the process list does not show. */
  async run(args: readonly string[], input?: string): Promise<WranglerResult> {
    const events = path.join(this.#options.scratch, `events-${crypto.randomUUID()}.jsonl`)
    const child = Bun.spawn(this.#argv(args), {
      cwd: ROOT,
      env: { ...this.#env, WRANGLER_OUTPUT_FILE_PATH: events },
      stdin: input === undefined ? 'ignore' : new TextEncoder().encode(input),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    const errorCode = await readErrorCode(events)
    rmSync(events, { force: true })
    return { isOk: status === 0, stdout, stderr, errorCode }
  }

  /** Runs a command and shows its output. */
  async show(args: readonly string[]): Promise<boolean> {
    const child = Bun.spawn(this.#argv(args), {
      cwd: ROOT,
      env: this.#env,
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    return (await child.exited) === 0
  }

  #argv(args: readonly string[]): string[] {
    return [...this.#program, ...args, '--config', this.#options.config]
  }

  get #env(): Record<string, string | undefined> {
    const { scratch, engine } = this.#options
    return {
      ...process.env,
      // Prompts cannot be answered.
      CI: '1',
      WRANGLER_HIDE_BANNER: 'true',
      WRANGLER_SEND_METRICS: 'false',
      WRANGLER_LOG_PATH: path.join(scratch, 'logs'),
      ...(engine !== undefined && { WRANGLER_DOCKER_BIN: engine }),
    }
  }
}

/** The code in wrangler's file of events, which has a JSON object per line. */
async function readErrorCode(file: string): Promise<number | undefined> {
  const text = await Bun.file(file)
    .text()
    .catch(() => '')
  for (const line of text.split('\n').filter((line) => line !== '')) {
    const event = JSON.parse(line) as { readonly type?: unknown; readonly code?: unknown }
    if (event.type === 'command-failed' && typeof event.code === 'number') return event.code
  }
  return undefined
}
