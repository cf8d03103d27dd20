import { type ErrorCode, SandwireError } from '@sandwire/protocol'
import type { Aliases } from './aliases.ts'
import type { AttachCall, PtyAsk } from './call.ts'
import { noSuchSession } from './missing.ts'
import type { SessionNames } from './session-names.ts'

export interface PtyDoorDependencies {
  readonly aliases: Aliases
  readonly names: Pick<SessionNames, 'tokenOf'>
  /** Makes up a name where sessions have no tokens. */
  readonly mintAlias: () => string
}

/** Goes in: joins or starts a session as the call says; throws when that cannot be done. */
type Enter = (call: AttachCall) => Promise<Response>

/** What a session that is asked for can be missing by. A sandbox that is stopped has none. */
const MISSING: readonly ErrorCode[] = ['session_not_found', 'session_gone', 'sandbox_stopped']

function isMissing(caught: unknown): boolean {
  return caught instanceof SandwireError && MISSING.includes(caught.code)
}

/** Finds the session that a client of `/ws/pty` means, by our names or its own, or starts one. */
export class PtyDoor {
  readonly #deps: PtyDoorDependencies
  /** Whoever comes by the same name at once must not start two: the last of those under way, by account and name. */
  readonly #underWay = new Map<string, Promise<unknown>>()

  constructor(deps: PtyDoorDependencies) {
    this.#deps = deps
  }

  async open(call: AttachCall, ask: PtyAsk, enter: Enter): Promise<Response> {
    const { joins, identity } = call
    const { alias } = ask
    if (joins !== undefined) return this.#join(call, joins, enter)
    if (alias === undefined) return this.#start(call, ask, enter)
    return this.#inTurn(`${identity} ${alias}`, async () => {
      const known = ask.which === 'new' ? undefined : this.#deps.aliases.find(identity, alias)
      const joined = known === undefined ? undefined : await this.#tryJoin(call, known, enter)
      if (joined !== undefined) return joined
      if (ask.which === 'resume') throw noSuchSession()
      return this.#start(call, ask, enter)
    })
  }

  async #tryJoin(call: AttachCall, session: string, enter: Enter): Promise<Response | undefined> {
    try {
      return await this.#join(call, session, enter)
    } catch (caught) {
      if (isMissing(caught)) return undefined
      throw caught
    }
  }

  async #join(call: AttachCall, session: string, enter: Enter): Promise<Response> {
    // What it would have started says nothing about what it joins.
    const { template: _, env: __, session: ___, ...rest } = call
    const query = new URLSearchParams({ session })
    // A client that starts again where nothing runs is shown an end that it knows no second time.
    if (call.pty?.which === 'either' && call.joins === undefined) query.append('ended', '0')
    const sessionName = await this.#nameOf(call, session)
    return enter({ ...rest, joins: session, query: query.toString(), sessionName })
  }

  async #start(call: AttachCall, { alias, startRefusal }: PtyAsk, enter: Enter): Promise<Response> {
    if (startRefusal !== undefined) throw new SandwireError(startRefusal.code, startRefusal.message)
    const { session, identity } = call
    if (session === undefined) throw new Error('A session to start has no id')
    const opened = await enter({ ...call, sessionName: await this.#nameOf(call, session) })
    if (alias !== undefined) this.#deps.aliases.put(identity, alias, session)
    return opened
  }

  /** What the client is told that its session is called: says nothing, works for this account alone. */
  async #nameOf({ identity, pty }: AttachCall, session: string): Promise<string> {
    const { names, aliases, mintAlias } = this.#deps
    const { token } = await names.tokenOf({ id: session, mode: 'pty' }, identity)
    if (token !== undefined) return token
    if (pty?.alias !== undefined) return pty.alias
    const made = mintAlias()
    aliases.put(identity, made, session)
    return made
  }

  async #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#underWay.get(key) ?? Promise.resolve()
    const mine = before.then(work, work)
    this.#underWay.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.#underWay.get(key) === mine) this.#underWay.delete(key)
    }
  }
}
