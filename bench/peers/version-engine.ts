import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DAEMON_MEMORY } from '../../apps/host/src/isolation/system-tools.ts'
import type { EngineCommand, EngineResult } from '../programs/version-engine.ts'

const PROGRAM = join(import.meta.dir, '../programs/version-engine.ts')
/** Controllers of the processor, of both versions of control groups. */
const GROUPS = [
  { parent: '/sys/fs/cgroup/cpu', quota: 'cpu.cfs_quota_us', quarter: '25000' },
  { parent: '/sys/fs/cgroup', quota: 'cpu.max', quarter: '25000 100000' },
]

/** A process that saves and restores as sandboxd does; see the program. */
export class VersionEngine implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  readonly #output: AsyncIterator<Uint8Array, undefined>
  #text = ''

  /** `prefix` starts the program under another one. */
  constructor(root: string, store: string, prefix: readonly string[] = []) {
    mkdirSync(root, { recursive: true })
    // Its own process ids: as in a sandbox, there are few processes to pause.
    const apart = process.getuid?.() === 0 ? ['unshare', '--pid', '--fork', '--mount-proc'] : []
    this.#child = Bun.spawn([...prefix, ...apart, process.execPath, PROGRAM, root, store], {
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'inherit',
      env: { ...process.env, ...DAEMON_MEMORY },
    })
    this.#output = this.#child.stdout[Symbol.asyncIterator]()
  }

  async run(command: EngineCommand): Promise<EngineResult> {
    await this.#child.stdin.write(`${JSON.stringify(command)}\n`)
    await this.#child.stdin.flush()
    while (!this.#text.includes('\n')) {
      const read: IteratorResult<Uint8Array, undefined> = await this.#output.next()
      if (read.done === true) throw new Error('The program for saves has ended')
      this.#text += Buffer.from(read.value).toString()
    }
    const [line = '', rest = ''] = this.#text.split('\n')
    this.#text = rest
    return JSON.parse(line) as EngineResult
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.stdin.end()
    await this.#child.exited
  }
}

/** A control group whose processes share a quarter of a processor; undefined where none can be made. */
export function openQuarterGroup(): ({ readonly prefix: readonly string[] } & Disposable) | undefined {
  for (const { parent, quota, quarter } of GROUPS) {
    const group = join(parent, `sandwire-bench-${process.pid}`)
    try {
      if (!existsSync(join(parent, 'cgroup.procs'))) continue
      mkdirSync(group)
      writeFileSync(join(group, quota), quarter)
      const prefix = ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', group]
      return { prefix, [Symbol.dispose]: () => rmdirSync(group) }
    } catch {
      // This version of control groups, or its controller, is not in use.
      if (existsSync(group)) rmdirSync(group)
    }
  }
  return undefined
}
