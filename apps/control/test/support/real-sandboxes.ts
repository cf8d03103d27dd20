import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { StartSpec } from '@sandwire/internal-api'
import type { SandboxRunner } from './fake-host.ts'

const MAIN = path.resolve(import.meta.dir, '../../../sandboxd/src/main.ts')

interface Place {
  readonly child: Bun.Subprocess<'ignore', 'pipe', 'ignore'>
  readonly folder: string
}

/** The first line of output; sandboxd prints it when it listens. */
async function firstLine(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true })
    const end = text.indexOf('\n')
    if (end >= 0) return text.slice(0, end)
  }
  throw new Error('It ended before it was ready')
}

/** Sandboxes with the real sandboxd and no isolation. */
export class RealSandboxes implements SandboxRunner, AsyncDisposable {
  readonly #places = new Map<string, Place>()
  readonly #env: Readonly<Record<string, string>>

  /** `env` extends the environment of this process. */
  constructor(env: Readonly<Record<string, string>> = {}) {
    this.#env = env
  }

  async start({ id, publicKey, env }: StartSpec): Promise<string> {
    const folder = mkdtempSync(path.join(tmpdir(), 'sandwire-real-'))
    const keyFile = path.join(folder, 'key')
    writeFileSync(keyFile, publicKey)
    const socket = path.join(folder, 'sock')
    const argv = ['--listen', `unix:${socket}`, '--workspace', folder, '--public-key', keyFile]
    const child = Bun.spawn([process.execPath, MAIN, ...argv, '--sandbox', id], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
      env: { ...process.env, TMUX_TMPDIR: folder, ...this.#env, ...env },
    })
    this.#places.set(id, { child, folder })
    await firstLine(child.stdout)
    return socket
  }

  /** Sends a signal to the sandboxd of every sandbox. */
  signal(signal: NodeJS.Signals): void {
    for (const { child } of this.#places.values()) child.kill(signal)
  }

  /** Workspaces, which also contain the key and the socket of sandboxd. */
  get folders(): readonly string[] {
    return [...this.#places.values()].map(({ folder }) => folder)
  }

  async stop(id: string): Promise<void> {
    const place = this.#places.get(id)
    this.#places.delete(id)
    if (place === undefined) return
    place.child.kill('SIGTERM')
    await place.child.exited
    rmSync(place.folder, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.#places.keys()) await this.stop(id)
  }
}
