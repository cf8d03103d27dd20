import { KeyedSerializer } from '@sandwire/async'
import { type ErrorCode, isErrorCode, SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import type { AttachCall } from '../sandbox/call.ts'
import { noSuchSession } from '../sandbox/not-found.ts'
import type { SessionNames } from '../sandbox/session-names.ts'
import type { SessionAliases } from './session-aliases.ts'

/** The part of an attach of a compat client that the sandbox's object decides on. */
const selection = z.object({
  /** `resume`: only an existing session. `new`: always a new one. `either`: the existing session if there is one. */
  select: z.enum(['resume', 'new', 'either']),
  /** Interval of pings to the client; absent: sandboxd's default. */
  heartbeatSeconds: z.int().exactOptional(),
  /** The client's own name for the session. */
  alias: z.string().exactOptional(),
  /** Why the caller may not start a session; applies only if one would be started. */
  startRefusal: z.object({ code: z.string().refine(isErrorCode), message: z.string() }).exactOptional(),
})
const tools = z.array(z.string()).readonly().exactOptional()
export const ptySelectionSchema = selection.extend({ kind: z.literal('pty') })
/** For a provider that runs Claude Code itself. */
export const claudeSelectionSchema = selection.extend({
  kind: z.literal('claude'),
  options: z.object({
    model: z.string().exactOptional(),
    permissionMode: z.enum(['acceptEdits', 'plan']).exactOptional(),
    allowedTools: tools,
    disallowedTools: tools,
    maxThinkingTokens: z.int().exactOptional(),
    maxTurns: z.int().exactOptional(),
    maxBudgetUsd: z.number().exactOptional(),
  }),
})
export type Selection = z.infer<typeof ptySelectionSchema> | z.infer<typeof claudeSelectionSchema>

export interface CompatSessionsDependencies {
  readonly aliases: SessionAliases
  readonly names: Pick<SessionNames, 'tokenOf'>
  /** Makes up an alias where sessions have no tokens. */
  readonly mintAlias: () => string
}

/** Joins or starts a session as the call says; throws if it cannot. */
type Attach = (call: AttachCall) => Promise<Response>

/** Errors that mean the requested session does not exist. A stopped sandbox has no sessions. */
const MISSING: readonly ErrorCode[] = ['session_not_found', 'session_gone', 'sandbox_stopped']

function isMissing(caught: unknown): boolean {
  return caught instanceof SandwireError && MISSING.includes(caught.code)
}

/** Finds the session that a client of `/ws/pty` or `/ws/claude-stream` names by id, token or alias, or starts one. */
export class CompatSessions {
  readonly #deps: CompatSessionsDependencies
  /** By account and alias: concurrent attaches with one alias must not start two sessions. */
  readonly #serializer = new KeyedSerializer()

  constructor(deps: CompatSessionsDependencies) {
    this.#deps = deps
  }

  async open(call: AttachCall, selection: Selection, attach: Attach): Promise<Response> {
    const { joins, identity } = call
    const { select } = selection
    const alias = aliasOf(selection)
    if (joins !== undefined) return this.#join(call, selection, joins, attach)
    if (alias === undefined) return this.#start(call, selection, attach)
    return this.#serializer.run(`${identity} ${alias}`, async () => {
      const known = select === 'new' ? undefined : this.#deps.aliases.find(identity, alias)
      const joined = known === undefined ? undefined : await this.#tryJoin(call, selection, known, attach)
      if (joined !== undefined) return joined
      if (select === 'resume') throw noSuchSession()
      return this.#start(call, selection, attach)
    })
  }

  async #tryJoin(
    call: AttachCall,
    selection: Selection,
    session: string,
    attach: Attach,
  ): Promise<Response | undefined> {
    try {
      return await this.#join(call, selection, session, attach)
    } catch (caught) {
      if (isMissing(caught)) return undefined
      throw caught
    }
  }

  async #join(call: AttachCall, selection: Selection, session: string, attach: Attach): Promise<Response> {
    // These describe the session that would have been started.
    const { template: _, env: __, session: ___, ...rest } = call
    const query = new URLSearchParams({ session })
    // The client starts a new session once this one has exited, so it must not be shown the known exit again.
    if (selection.select === 'either' && call.joins === undefined) query.append('ended', '0')
    const sessionName = await this.#nameOf(call, selection, session)
    return attach({ ...rest, joins: session, query: query.toString(), sessionName })
  }

  async #start(call: AttachCall, selection: Selection, attach: Attach): Promise<Response> {
    const { startRefusal } = selection
    const alias = aliasOf(selection)
    if (startRefusal !== undefined) throw new SandwireError(startRefusal.code, startRefusal.message)
    const { session, identity } = call
    if (session === undefined) throw new Error('A session to start has no id')
    const opened = await attach({ ...call, sessionName: await this.#nameOf(call, selection, session) })
    if (alias !== undefined) this.#deps.aliases.put(identity, alias, session)
    return opened
  }

  /** The session name reported to the client: an opaque token or alias, valid for this account only. */
  async #nameOf(call: AttachCall, { kind, alias }: Selection, session: string): Promise<string> {
    const { names, aliases, mintAlias } = this.#deps
    const { token } = await names.tokenOf({ id: session, mode: kind }, call.identity)
    if (token !== undefined) return token
    if (alias !== undefined) return alias
    const minted = mintAlias()
    aliases.put(call.identity, aliasOf({ kind, alias: minted }) ?? minted, session)
    return minted
  }
}

/** The name as it is stored; names that clients make up have no colon. */
function aliasOf({ kind, alias }: Pick<Selection, 'kind' | 'alias'>): string | undefined {
  return alias === undefined || kind === 'pty' ? alias : `${kind}:${alias}`
}
