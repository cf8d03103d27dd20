import { eventually, type Random } from '@sandwire/testing'
import { Deployment } from '../e2e/support/deployment.ts'
import { Failpoints } from '../e2e/support/failpoints/failpoints.ts'
import { mintToken, TestUser, USERS_ENV } from '../e2e/support/test-user.ts'

export const OPERATIONS = ['create', 'start', 'stop', 'destroy', 'share', 'revoke'] as const
export type Operation = (typeof OPERATIONS)[number]

/**
 * What happens to processes. `kill_all`: as when the machine loses power. `freeze_host_kill_workerd`: control restarts while the
 * host cannot answer it.
 */
export const FAULTS = [
  'kill_workerd',
  'kill_host',
  'kill_supervisor',
  'kill_sandboxd',
  'kill_all',
  'freeze_host',
  'freeze_workerd',
  'freeze_supervisor',
  'freeze_sandboxd',
  'freeze_host_kill_workerd',
] as const
export type Fault = (typeof FAULTS)[number]

/** When: before or after a step of the operation, or some milliseconds after the request was sent. */
export type Moment = { readonly before: string } | { readonly after: string } | number

export interface Round {
  readonly operation: Operation
  readonly fault: Fault
  readonly moment: Moment
}

/** The host closes the connections of a sandbox whose sandboxd does not. */
const DISCONNECT = 'POST disconnect'
/** Requests to the host, and methods of control's objects, that an operation consists of. */
const STEPS: Readonly<Record<Operation, readonly string[]>> = {
  create: ['account.claim', 'account.reserveStart', 'PUT'],
  start: ['account.reserveStart', 'PUT'],
  stop: ['POST stop'],
  destroy: ['DELETE', 'account.remove'],
  share: ['sandbox.grant', 'sandbox.redeemGrant', 'account.addHeldGrant'],
  revoke: ['sandbox.revokeGrant', DISCONNECT, 'account.removeHeldGrant'],
}
/** A revocation falls back to the host after some attempts. */
const REACHED_MS = 15_000
const FROZEN_MS = 1_500
/** Time after a fault within which list, show, files, names and grants must be true again. */
const TRUE_MS = 30_000
const MAX_DELAY_MS = 400

/** Unknown: the request failed or had no answer, so that both are right; the first look decides. */
type Presence = 'present' | 'gone' | 'unknown'

interface Grant {
  readonly id: string
  presence: Presence
  /** Whether the other account holds it. */
  held: Presence
}

/** What is known about a sandbox. */
interface Known {
  readonly name: string
  id: string | undefined
  presence: Presence
  /** Content of its file; undefined when it was not written. */
  content: string | undefined
  grants: Grant[]
}

export function randomRound(random: Random): Round {
  const operation = OPERATIONS[random.int(0, OPERATIONS.length - 1)] ?? 'create'
  const fault = FAULTS[random.int(0, FAULTS.length - 1)] ?? 'kill_workerd'
  const steps = STEPS[operation]
  const moments: Moment[] = [
    random.int(0, steps.includes('PUT') ? MAX_DELAY_MS : MAX_DELAY_MS / 10),
    ...steps.flatMap((step): Moment[] => [{ before: step }, { after: step }]),
  ]
  return { operation, fault, moment: moments[random.int(0, moments.length - 1)] ?? 0 }
}

export function describeRound({ operation, fault, moment }: Round): string {
  const when =
    typeof moment === 'number'
      ? `after ${moment} ms`
      : Object.entries(moment)
          .map(([side, step]) => `${side} ${step}`)
          .join()
  return `${operation} with ${fault} ${when}`
}

/** An answer that says that the request was wrong. */
class Refused extends Error {}

function findHeld({ grants }: Known): Grant | undefined {
  return grants.find(({ presence, held }) => presence === 'present' && held === 'present')
}

function signal(pid: number | undefined, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(pid, name)
  } catch {
    // It has ended already.
  }
}

/** A deployment whose processes are killed and frozen during operations, and a model of what must be true afterwards. */
export class StateTruth implements AsyncDisposable {
  readonly #failpoints: Failpoints
  readonly #deployment: Deployment
  readonly #owner: TestUser
  readonly #other: TestUser
  #sandboxes: Known[] = []
  #count = 0
  #slowestMs = 0

  private constructor(failpoints: Failpoints, deployment: Deployment) {
    this.#failpoints = failpoints
    this.#deployment = deployment
    this.#owner = new TestUser(deployment, deployment.host.token)
    this.#other = new TestUser(deployment, mintToken('other'))
  }

  static async open(): Promise<StateTruth> {
    const failpoints = new Failpoints()
    return new StateTruth(failpoints, await Deployment.open({ env: { ...USERS_ENV, ...failpoints.env } }))
  }

  /** Longest time after a fault was healed until everything was true. */
  get slowestMs(): number {
    return this.#slowestMs
  }

  /** Runs an operation with a fault, heals the deployment, and compares it with the model; throws at a difference. */
  async run(round: Round): Promise<void> {
    const { operation, fault, moment } = round
    const sandbox = await this.#prepare(operation)
    let acted: Promise<void> = Promise.resolve()
    const act = async (reported: string): Promise<void> => {
      acted = this.#disturb(fault, reported === '' ? (sandbox.id ?? '') : reported)
      await acted
    }
    if (typeof moment === 'number') {
      acted = Bun.sleep(moment).then(() => act(''))
      await this.#operate(operation, sandbox)
    } else await this.#operateTo(operation, sandbox, moment, act)
    await acted
    await this.#heal()
    await this.#compare()
  }

  /** Performs the operation, and acts at one of its steps. */
  async #operateTo(
    operation: Operation,
    sandbox: Known,
    moment: Exclude<Moment, number>,
    act: (sandbox: string) => Promise<void>,
  ): Promise<void> {
    const point =
      'before' in moment
        ? ({ call: moment.before, moment: 'before' } as const)
        : ({ call: moment.after, moment: 'after' } as const)
    // Only a sandboxd that does not answer makes control ask the host.
    const frozen = point.call === DISCONNECT ? this.#deployment.sandboxd(sandbox.id ?? '') : undefined
    if (frozen !== undefined) process.kill(frozen, 'SIGSTOP')
    try {
      this.#failpoints.arm(point, act)
      await this.#operate(operation, sandbox)
      const isReached = (): boolean => !this.#failpoints.isArmed
      await eventually(isReached, { what: `the step "${point.call}"`, timeoutMs: REACHED_MS })
    } finally {
      this.#failpoints.disarm()
      if (frozen !== undefined) signal(frozen, 'SIGCONT')
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#failpoints.disarm()
    await this.#deployment[Symbol.asyncDispose]()
    this.#failpoints[Symbol.dispose]()
  }

  /** A sandbox in the state that the operation needs. */
  async #prepare(operation: Operation): Promise<Known> {
    if (operation === 'create') return this.#add()
    const found = this.#sandboxes.find(
      ({ presence, content }) => presence === 'present' && content !== undefined,
    )
    const sandbox = found ?? this.#add()
    if (found === undefined) {
      const { id } = await this.#deployment.create(sandbox.name, { limits: { diskBytes: 64 * 1024 ** 2 } })
      sandbox.id = id
      sandbox.presence = 'present'
    }
    await this.#send('POST', `/api/sandboxes/${sandbox.name}/start`)
    if (sandbox.content === undefined) await this.#write(sandbox)
    if (operation === 'start') await this.#send('POST', `/api/sandboxes/${sandbox.name}/stop`)
    if (operation === 'revoke' && findHeld(sandbox) === undefined) {
      const id = await this.#owner.shareWith(this.#other, { sandbox: sandbox.name })
      sandbox.grants.push({ id, presence: 'present', held: 'present' })
    }
    return sandbox
  }

  #add(): Known {
    const name = `box-${this.#count++}`
    const sandbox: Known = { name, id: undefined, presence: 'unknown', content: undefined, grants: [] }
    this.#sandboxes.push(sandbox)
    return sandbox
  }

  async #send(method: string, path: string, body?: string): Promise<Response> {
    const init = body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }
    const response = await this.#deployment.fetch(path, { method, ...init })
    if (response.ok) return response
    const problem = `${method} ${path}: ${response.status} ${await response.text()}`
    throw response.status < 500 ? new Refused(problem) : new Error(problem)
  }

  async #write(sandbox: Known): Promise<void> {
    const content = crypto.randomUUID()
    const response = await this.#deployment.fetch(this.#fileOf(sandbox), { method: 'PUT', body: content })
    if (!response.ok) throw new Error(`Cannot write: ${response.status} ${await response.text()}`)
    sandbox.content = content
  }

  #fileOf({ name }: Known): string {
    return `/api/workspaces/${name}/file?path=truth.txt`
  }

  /** Performs the operation and notes its outcome in the model. */
  async #operate(operation: Operation, sandbox: Known): Promise<void> {
    const { name } = sandbox
    const settle = async (request: Promise<Response>): Promise<Record<string, unknown> | undefined> => {
      try {
        const text = await (await request).text()
        return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
      } catch (error) {
        // A refusal is a mistake of this test. Otherwise there was no answer, or an error: the model does not know the outcome.
        if (error instanceof Refused) throw error
        return undefined
      }
    }
    switch (operation) {
      case 'create': {
        const body = JSON.stringify({ name, limits: { diskBytes: 64 * 1024 ** 2 } })
        const made = await settle(this.#send('POST', '/api/sandboxes', body))
        if (made === undefined) return
        sandbox.id = String(made['id'])
        sandbox.presence = 'present'
        return
      }
      case 'start':
      case 'stop':
        await settle(this.#send('POST', `/api/sandboxes/${name}/${operation}`))
        return
      case 'destroy': {
        const done = await settle(this.#send('DELETE', `/api/sandboxes/${name}`))
        sandbox.presence = done === undefined ? 'unknown' : 'gone'
        return
      }
      case 'share': {
        const body = JSON.stringify({ sandbox: name, role: 'viewer' })
        const made = await settle(this.#send('POST', '/api/grants', body))
        if (made === undefined) return
        const grant: Grant = { id: String(made['grant']), presence: 'present', held: 'gone' }
        sandbox.grants.push(grant)
        const link = String(made['link']).split('#')[1]
        const redeemed = await this.#other.send('POST', '/api/grants/redeem', { link }).catch(() => undefined)
        grant.held = redeemed === undefined ? 'unknown' : 'present'
        return
      }
      case 'revoke': {
        const grant = findHeld(sandbox)
        if (grant === undefined) throw new Error('There is no grant to revoke')
        const done = await settle(this.#send('DELETE', `/api/grants/${grant.id}`))
        grant.presence = done === undefined ? 'unknown' : 'gone'
      }
    }
  }

  async #disturb(fault: Fault, id: string): Promise<void> {
    const { host } = this.#deployment
    const freeze = (pid: number | undefined): void => {
      signal(pid, 'SIGSTOP')
      setTimeout(() => signal(pid, 'SIGCONT'), FROZEN_MS)
    }
    const find = (look: (id: string) => number): number | undefined => {
      try {
        return look(id)
      } catch {
        // Not started yet, or ended.
        return undefined
      }
    }
    const supervisor = (): number | undefined => find((each) => this.#deployment.supervisor(each))
    const sandboxd = (): number | undefined => find((each) => this.#deployment.sandboxd(each))
    switch (fault) {
      case 'kill_workerd':
        return signal(this.#deployment.workerd, 'SIGKILL')
      case 'kill_host':
        return this.#deployment.killHost()
      case 'kill_supervisor':
        return signal(supervisor(), 'SIGKILL')
      case 'kill_sandboxd':
        return signal(sandboxd(), 'SIGKILL')
      case 'kill_all':
        for (const pid of [this.#deployment.workerd, supervisor(), sandboxd()]) signal(pid, 'SIGKILL')
        return this.#deployment.killHost()
      case 'freeze_host':
        return freeze(host.pid)
      case 'freeze_workerd':
        return freeze(this.#deployment.workerd)
      case 'freeze_supervisor':
        return freeze(supervisor())
      case 'freeze_sandboxd':
        return freeze(sandboxd())
      case 'freeze_host_kill_workerd': {
        const workerd = this.#deployment.workerd
        freeze(host.pid)
        return signal(workerd, 'SIGKILL')
      }
    }
  }

  async #heal(): Promise<void> {
    const isUp = async (): Promise<boolean> => (await this.#deployment.fetch('/readyz')).ok
    if (await Promise.race([this.#deployment.host.exited.then(() => true), Bun.sleep(0).then(() => false)]))
      await this.#deployment.restart()
    await eventually(() => isUp().catch(() => false), { what: 'the server', timeoutMs: TRUE_MS })
  }

  /** Compares everything with the model, until it is equal or the time is over. */
  async #compare(): Promise<void> {
    let problem: unknown
    const startedMs = performance.now()
    await eventually(
      () =>
        this.#compareOnce().then(
          () => true,
          (error: unknown) => {
            problem = error
            return false
          },
        ),
      { what: 'the truth', timeoutMs: TRUE_MS },
    ).catch(() => {
      throw new Error(`Not true after ${TRUE_MS / 1000} s`, { cause: problem })
    })
    this.#slowestMs = Math.max(this.#slowestMs, performance.now() - startedMs)
    this.#sandboxes = this.#sandboxes.filter(({ presence }) => presence !== 'gone')
  }

  async #compareOnce(): Promise<void> {
    const listed = await this.#deployment.list()
    const names = new Set(this.#sandboxes.map(({ name }) => name))
    const stranger = listed.find(({ name }) => !names.has(name))
    if (stranger !== undefined)
      throw new Error(`The list has an unknown sandbox: ${JSON.stringify(stranger)}`)
    for (const sandbox of this.#sandboxes) {
      const rows = listed.filter(({ name }) => name === sandbox.name)
      const shown = await this.#deployment.fetch(`/api/sandboxes/${sandbox.name}`)
      const [row] = rows
      const where = `${sandbox.name} (${sandbox.presence})`
      if (rows.length > 1) throw new Error(`${where}: the list has it ${rows.length} times`)
      if ((row !== undefined) !== shown.ok) throw new Error(`${where}: list and show differ, ${shown.status}`)
      if (row === undefined) await this.#compareGone(sandbox, where)
      else await this.#comparePresent(sandbox, row, (await shown.json()) as { id: string; state: string })
    }
  }

  async #compareGone(sandbox: Known, where: string): Promise<void> {
    if (sandbox.presence === 'present') throw new Error(`${where}: it is gone`)
    const read = await this.#deployment.fetch(this.#fileOf(sandbox))
    if (read.status !== 404) throw new Error(`${where}: its files answer ${read.status}`)
    const left = sandbox.id === undefined ? [] : this.#deployment.leftovers(sandbox.id)
    if (left.length > 0) throw new Error(`${where}: left behind:\n${left.join('\n')}`)
    sandbox.presence = 'gone'
    // The name is free.
    const next = await this.#deployment.create(sandbox.name, { start: false })
    await this.#deployment.destroy(sandbox.name)
    if (next.id === sandbox.id) throw new Error(`${where}: the id was used again`)
  }

  async #comparePresent(
    sandbox: Known,
    row: { id: string; state: string },
    shown: { id: string; state: string },
  ): Promise<void> {
    const { name } = sandbox
    const where = `${name} (${sandbox.presence})`
    if (sandbox.presence === 'gone') throw new Error(`${where}: it is back, ${shown.state}`)
    if (row.id !== shown.id || (sandbox.id !== undefined && sandbox.id !== shown.id))
      throw new Error(`${where}: ids differ: ${sandbox.id}, ${row.id}, ${shown.id}`)
    if (row.state !== shown.state) throw new Error(`${where}: list says ${row.state}, show ${shown.state}`)
    // A destruction that goes on by itself.
    if (shown.state === 'destroying') throw new Error(`${where}: still ${shown.state}`)
    if (shown.state !== 'running') await this.#send('POST', `/api/sandboxes/${name}/start`)
    if (sandbox.content !== undefined) {
      const read = await this.#deployment.fetch(this.#fileOf(sandbox))
      const content = await read.text()
      if (content !== sandbox.content)
        throw new Error(`${where}: its file is "${content}" (${read.status}), not "${sandbox.content}"`)
    }
    const body = JSON.stringify({ cmd: 'echo', args: ['alive'] })
    const ran = (await (await this.#send('POST', `/api/sandboxes/${name}/exec`, body)).json()) as {
      output: string
    }
    if (ran.output !== 'alive\n') throw new Error(`${where}: echo printed ${JSON.stringify(ran)}`)
    sandbox.id = shown.id
    sandbox.presence = 'present'
    await this.#compareGrants(sandbox, where)
    if (sandbox.content === undefined) await this.#write(sandbox)
  }

  async #compareGrants(sandbox: Known, where: string): Promise<void> {
    const answer = await this.#owner.send('GET', `/api/grants?sandbox=${sandbox.name}`)
    const rows = Array.isArray(answer['grants'])
      ? (answer['grants'] as { grant: string; state: string }[])
      : []
    const listed = new Map(rows.map(({ grant, state }) => [grant, state]))
    for (const grant of sandbox.grants) {
      const state = listed.get(grant.id)
      if (grant.presence === 'unknown') grant.presence = state === undefined ? 'gone' : 'present'
      if ((state !== undefined) !== (grant.presence === 'present'))
        throw new Error(`${where}: grant ${grant.id} must be ${grant.presence}`)
      if (state === undefined) continue
      if (grant.held === 'unknown') grant.held = state === 'held' ? 'present' : 'gone'
      if ((state === 'held') !== (grant.held === 'present'))
        throw new Error(`${where}: grant ${grant.id} is ${state}, its holder must be ${grant.held}`)
    }
    sandbox.grants = sandbox.grants.filter(({ presence }) => presence === 'present')
    const held = rows.filter(({ state }) => state === 'held').map(({ grant }) => grant)
    const seen = await this.#other.fetch(`/api/sandboxes/${sandbox.id}`)
    if (seen.ok !== held.length > 0) throw new Error(`${where}: the other account gets ${seen.status}`)
    const theirs = await this.#other.send('GET', '/api/account/grants')
    const index = (theirs['grants'] as { grant: string; sandbox: string }[])
      .filter((grant) => grant.sandbox === sandbox.id)
      .map(({ grant }) => grant)
    if (index.toSorted().join() !== held.toSorted().join())
      throw new Error(`${where}: the other account lists ${index.join()}, not ${held.join()}`)
  }
}
