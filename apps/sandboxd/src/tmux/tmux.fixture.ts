import { afterEach, describe } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { ProcessEnd, RunningProcess } from '../processes/process.ts'
import { createStartProcess } from '../processes/start-process.ts'
import { TmuxService } from './tmux-service.ts'
import type { TmuxView, TmuxWindow } from './view.ts'

const PATH = process.env['PATH'] ?? ''
const startProcess = createStartProcess()
export const describeTmux = describe.skipIf(Bun.which('tmux') === null)

export const cleanups: (() => void)[] = []
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** A service with a tmux server of its own, whose shell prompts with `$ `. */
export function setUp({ hasTmux = true } = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'tmux-'))
  writeFileSync(path.join(folder, '.tmux.conf'), 'set -g default-command "PS1=\'$ \' exec sh"\n')
  const env = { PATH: hasTmux ? PATH : folder, HOME: folder, TMUX_TMPDIR: folder }
  const tmux = (...args: string[]): string =>
    Bun.spawnSync(['tmux', ...args], { env: { ...env, PATH } }).stdout.toString()
  cleanups.push(() => {
    tmux('kill-server')
    rmSync(folder, { recursive: true, force: true })
  })
  const service = new TmuxService({
    startProcess,
    uid: process.getuid?.() ?? 0,
    now: () => performance.now(),
    asUser: (action) => action(),
    cwd: folder,
    baseEnv: env,
  })
  return { service, tmux, folder }
}

/** Opens a pane and records what it sends. */
export function open(service: TmuxService, pane: string) {
  const chunks: Uint8Array[] = []
  const checks = new Set<() => void>()
  const sizes: string[] = []
  let end: ProcessEnd | undefined
  let settled = 0
  const started = service.startPane(pane)(
    { argv: ['tmux'], cwd: '/', env: {}, mode: 'pty', cols: 80, rows: 24 },
    {
      output: (_, chunk) => {
        chunks.push(chunk)
        for (const check of checks) check()
      },
      inputSettled: (bytes) => void (settled += bytes),
      inputRefused: () => undefined,
      inputClosed: () => undefined,
      resized: (cols, rows) => void sizes.push(`${cols}x${rows}`),
      ended: (ended) => void (end = ended),
    },
  )
  if ('failure' in started) throw new Error(started.message)
  const process: RunningProcess = started
  const bytes = (): Buffer => Buffer.concat(chunks)
  return {
    process,
    sizes,
    bytes,
    text: () => bytes().toString(),
    type: (text: string) => process.write(new TextEncoder().encode(text)),
    settled: () => settled,
    end: () => end,
    /** Resolves when the pane has sent this text. */
    shows: (text: string) =>
      new Promise<void>((resolve) => {
        const check = (): void => {
          if (!bytes().includes(text)) return
          checks.delete(check)
          resolve()
        }
        checks.add(check)
        check()
      }),
  }
}

export async function firstPane(service: TmuxService): Promise<string> {
  const { pane } = await service.act({ type: 'new_window' })
  if (pane === undefined) throw new Error('No pane')
  return pane
}

export function windowsIn(view: TmuxView): readonly TmuxWindow[] {
  return view.state === 'running' ? view.windows : []
}
