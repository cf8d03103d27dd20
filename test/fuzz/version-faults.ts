import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, type Random } from '@sandwire/testing'
import { Deployment } from '../e2e/support/deployment.ts'
import { FaultyS3, STORE_STEPS, type StoreStep } from '../e2e/support/faulty-s3.ts'

/** What is killed. `machine`: the sandbox with its disk. */
export const VICTIMS = ['sandboxd', 'workerd', 'host', 'machine'] as const

export interface VersionRound {
  readonly victim: (typeof VICTIMS)[number]
  /** A step of a save or a restore, or some milliseconds after the files changed. */
  readonly moment: StoreStep | number
}

/** Time after a kill within which the files can be used again: the objective of recovery time. */
export const RECOVERY_MS = 30_000
/** Longest moment after a change. */
const MAX_DELAY_MS = 15_000
const REACHED_MS = 30_000
const SANDBOX = 'dev'
/** Appends the time and copies the file, so that in every moment the copy is the beginning of the file. */
const WRITER = `nohup sh -c 'while [ ! -e stop ]; do date +%s%3N >> times; cp times copy; sleep 0.2; done' >/dev/null 2>&1 &`

export function randomVersionRound(random: Random): VersionRound {
  const moments = [...STORE_STEPS, random.int(0, MAX_DELAY_MS), random.int(0, MAX_DELAY_MS)]
  return { victim: random.pick(VICTIMS), moment: random.pick(moments) }
}

export function describeVersionRound({ victim, moment }: VersionRound): string {
  return `${victim} killed ${typeof moment === 'number' ? `${moment} ms after a change` : `at ${moment}`}`
}

export interface VersionRoundResult {
  /** From the kill until the files could be used. */
  readonly recoveryMs: number
  /** Age of the oldest change that is lost, at the kill; 0 when none is. */
  readonly lostMs: number
}

/** A host whose sandbox is killed while its files are saved and restored. The files must always be those of one moment. */
export class VersionFaults implements AsyncDisposable {
  readonly store: FaultyS3
  readonly deployment: Deployment
  readonly #id: string
  #count = 0
  /** When the last change began. */
  #changedMs = 0

  private constructor(store: FaultyS3, deployment: Deployment, id: string) {
    this.store = store
    this.deployment = deployment
    this.#id = id
  }

  static async open(): Promise<VersionFaults> {
    const store = new FaultyS3()
    const deployment = await Deployment.open({ env: store.env })
    const { id } = await deployment.create(SANDBOX)
    const faults = new VersionFaults(store, deployment, id)
    await faults.#change()
    await faults.checkpoint()
    return faults
  }

  async run({ victim, moment }: VersionRound): Promise<VersionRoundResult> {
    const isRestore = moment === 'table' || moment === 'segment'
    if (isRestore) return this.#killRestore(victim, moment)
    const held = Promise.withResolvers<undefined>()
    const reached =
      typeof moment === 'number' ? Bun.sleep(moment) : this.store.once(moment, () => held.promise)
    await this.#change()
    // A save begins at once, unless the moment is a time.
    if (typeof moment !== 'number') void this.checkpoint().catch(() => undefined)
    await Promise.race([reached, Bun.sleep(REACHED_MS)])
    const killedMs = Date.now()
    await this.#kill(victim)
    held.resolve(undefined)
    this.store.heal()
    return this.#recover(victim, killedMs, victim === 'machine')
  }

  /** Files that are not of one moment, or older than the last checkpoint, throw. */
  async #recover(victim: string, killedMs: number, mayLose: boolean): Promise<VersionRoundResult> {
    if (victim === 'host') await this.deployment.restart()
    const found = await eventually(() => this.#read(), {
      what: 'the files',
      timeoutMs: 2 * RECOVERY_MS,
      intervalMs: 250,
    })
    const recoveryMs = Date.now() - killedMs
    if (found.count !== this.#count && !(mayLose && found.count === this.#count - 1))
      throw new Error(`Found change ${found.count} instead of ${this.#count}`)
    if (!found.isWhole) throw new Error('The files are not those of one moment')
    const keptMs = found.count === this.#count ? found.writtenMs : this.#changedMs
    this.#count = found.count
    await this.checkpoint()
    return { recoveryMs, lostMs: mayLose ? Math.max(0, killedMs - keptMs) : 0 }
  }

  /** Kills while the files of a lost disk are restored. */
  async #killRestore(victim: VersionRound['victim'], step: StoreStep): Promise<VersionRoundResult> {
    await this.#change()
    await this.request('POST', '/stop')
    this.loseDisk()
    const held = Promise.withResolvers<undefined>()
    const reached = this.store.once(step, () => held.promise)
    const reading = this.#read().catch(() => undefined)
    await Promise.race([reached, reading])
    const killedMs = Date.now()
    await this.#kill(victim)
    held.resolve(undefined)
    this.store.heal()
    return this.#recover(victim, killedMs, false)
  }

  async #kill(victim: VersionRound['victim']): Promise<void> {
    switch (victim) {
      case 'workerd':
        return this.deployment.killWorkerd()
      case 'host':
        return this.deployment.killHost()
      case 'sandboxd':
        process.kill(this.deployment.sandboxd(this.#id), 'SIGKILL')
        return
      case 'machine':
        process.kill(this.deployment.supervisor(this.#id), 'SIGKILL')
        await eventually(async () => (await this.deployment.describe(SANDBOX)).state !== 'running', {
          what: 'the sandbox to be gone',
          timeoutMs: REACHED_MS,
          intervalMs: 100,
        })
        this.loseDisk()
    }
  }

  /** Removes the files of the stopped sandbox. */
  loseDisk(): void {
    const isolation = join(this.deployment.data, 'isolation')
    for (const kind of ['images', 'files'].filter((name) => existsSync(join(isolation, name))))
      for (const name of readdirSync(join(isolation, kind)).filter((each) => each.startsWith(this.#id)))
        rmSync(join(isolation, kind, name), { recursive: true })
  }

  /** Replaces the files; a program then goes on changing them. */
  async #change(): Promise<void> {
    this.#count += 1
    this.#changedMs = Date.now()
    const folder = `change-${this.#count}`
    // The new folder takes the place of the old one in one moment.
    await this.shell(
      `mkdir ${folder} && cd ${folder} && head -c 2000000 /dev/urandom > data && sha256sum data > sum && echo ${this.#count} > count && date +%s%3N > times && cp times copy && cd .. && ln -sfT ${folder} new && mv -T new now && cd now/ && ${WRITER} :`,
    )
  }

  /** The change that the files have; they are looked at while nothing changes them. */
  async #read(): Promise<{ count: number; isWhole: boolean; writtenMs: number }> {
    const output = await this.shell(
      'cd now/ && touch stop && sleep 0.5 && cat count && tail -n 1 times && sha256sum --status -c sum && cmp -n $(stat -c %s copy) copy times && echo whole',
    )
    const [count = '', time = ''] = output.split('\n')
    return { count: Number(count), writtenMs: Number(time), isWhole: output.includes('whole') }
  }

  async checkpoint(): Promise<void> {
    await this.request('POST', '/checkpoints', {})
  }

  /** Runs a script in the workspace; returns its output. */
  async shell(script: string, timeoutMs = RECOVERY_MS): Promise<string> {
    const body = { cmd: 'bash', args: ['-c', script] }
    const { output } = (await this.request('POST', '/exec', body, timeoutMs)) as { output: string }
    return output
  }

  async request(method: string, path: string, body?: unknown, timeoutMs?: number): Promise<unknown> {
    const response = await this.fetch(method, path, body, timeoutMs)
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`)
    return response.json()
  }

  /** Sends a request about the sandbox. */
  fetch(method: string, path: string, body?: unknown, timeoutMs = RECOVERY_MS): Promise<Response> {
    return this.deployment.fetch(`/api/sandboxes/${SANDBOX}${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.store.heal()
    await this.deployment[Symbol.asyncDispose]()
    await this.store[Symbol.asyncDispose]()
  }
}
