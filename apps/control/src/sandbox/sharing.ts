import { ROLES, SandwireError } from '@sandwire/protocol'
import type { Arrival } from '../account/shared.ts'
import { isEqualInConstantTime } from '../bytes.ts'
import type { SandboxCall } from './call.ts'
import {
  exchange,
  type GrantRecord,
  type HeldGrant,
  linkSpent,
  MAX_GRANTS,
  mintGrantId,
  noSuchGrant,
  toHeld,
} from './grants.ts'
import type { SandboxLife } from './life.ts'
import type { SandboxSessions } from './sessions.ts'
import type { SandboxStore } from './store.ts'
import { ticketScopes, ticketWaitMs, type TicketRecord, type TicketRequest } from './tickets.ts'

/** Ends the connections that hang on something that was withdrawn. */
export interface Cut {
  cut(what: { readonly grant: string }): Promise<void>
}

/** What a grant is made of. */
export interface GrantRequest {
  readonly session?: string
  readonly role: GrantRecord['role']
  readonly lifeMs: number
  readonly label: string
  /** SHA-256 of the link's secret. */
  readonly linkHash?: string
  /** Who gets it at once, instead of a link. */
  readonly account?: string
}

/** Whoever exchanges a link. */
export interface Redeemer {
  readonly account: string
  readonly name: string
}

/** A ticket that was good, and the sandbox it is for. */
export type TakenTicket = TicketRecord & { readonly sandbox: string }

export interface SharingDependencies {
  readonly life: SandboxLife
  readonly sessions: SandboxSessions
  readonly store: SandboxStore
  readonly cutting: Cut
  /**
   * Where accounts hear what was shared with them, and what is no longer. Told first, and only then given: nobody holds
   * anything that their account does not know of.
   */
  readonly holders: {
    /** Throws `too_many_grants` when the account takes no more. */
    tell(account: string, held: HeldGrant, arrival: Arrival): Promise<void>
    drop(account: string, grant: string): Promise<void>
  }
  /** How long tickets live. */
  readonly ticketMs: number
  readonly nowMs: () => number
  readonly random: (bytes: Uint8Array) => Uint8Array
}

/** What a sandbox's owner gives to others, and the tickets of everybody who may be here. */
export class SandboxSharing {
  readonly #deps: SharingDependencies

  constructor(deps: SharingDependencies) {
    this.#deps = deps
  }

  async grant(call: SandboxCall, request: GrantRequest): Promise<GrantRecord> {
    const { life, sessions, store, nowMs, random } = this.#deps
    const { session, role, lifeMs, label, linkHash, account } = request
    life.allow(call, 'own', session)
    // Sharing something that is not there would look like success to both.
    if (session !== undefined) await sessions.show(call, session)
    const { record } = life.allow(call, 'own')
    if (account === record.owner) throw new SandwireError('bad_request', 'Cannot share with yourself')
    this.#checkRoom()
    const made: GrantRecord = {
      id: mintGrantId(record.id, random),
      role,
      label,
      createdMs: nowMs(),
      expiresMs: nowMs() + lifeMs,
      ownerName: call.name,
      ...(session === undefined ? {} : { session }),
      ...(account === undefined ? {} : { holder: { account, name: '' } }),
    }
    const give = (): void => {
      life.allow(call, 'own')
      this.#checkRoom()
      store.sharing.insertGrant(made, linkHash)
    }
    if (account === undefined) give()
    else await this.#announced(account, toHeld(made, record), 'pushed', give)
    return made
  }

  grants(call: SandboxCall): readonly GrantRecord[] {
    const { life, store, nowMs } = this.#deps
    life.allow(call, 'own')
    return store.sharing.liveGrants(nowMs())
  }

  /** Takes a grant back: from now on it opens nothing, and what it opened is cut. */
  async revoke(call: SandboxCall, grant: string): Promise<void> {
    const { life, store, cutting, holders } = this.#deps
    life.allow(call, 'own')
    const holder = store.sharing.grant(grant)?.holder
    if (!store.sharing.removeGrant(grant)) throw noSuchGrant()
    await cutting.cut({ grant })
    // Only an index: what it leads to is gone, and its account finds that out by itself.
    if (holder !== undefined) await holders.drop(holder.account, grant).catch(() => undefined)
  }

  /** Gives up what one holds: it opens nothing any more, and what it opened is cut. */
  async leave({ identity }: SandboxCall, grant: string): Promise<void> {
    const { store, cutting, holders } = this.#deps
    if (this.held(identity, grant) === undefined) throw noSuchGrant()
    store.sharing.removeGrant(grant)
    await cutting.cut({ grant })
    await holders.drop(identity, grant).catch(() => undefined)
  }

  /** Exchanges a link. */
  async redeem(redeemer: Redeemer, grant: string, secretHash: string): Promise<HeldGrant> {
    const { account } = redeemer
    const { held } = this.#judge(redeemer, grant, secretHash)
    return this.#announced(account, held, 'redeemed', () => this.#exchange(redeemer, grant, secretHash))
  }

  /** A grant as its holder may know it; undefined when they do not hold it any more. */
  held(account: string, grant: string): HeldGrant | undefined {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const found = store.sharing.grant(grant)
    if (record === undefined || found?.holder?.account !== account || found.expiresMs <= nowMs())
      return undefined
    return toHeld(found, record)
  }

  /** Notes a ticket for what the caller may do right now; returns when it ends. */
  issueTicket(call: SandboxCall, request: TicketRequest): number {
    const { life, store, nowMs, ticketMs } = this.#deps
    const { identity, name, scopes, login, token, issuedMs, expiresMs } = call
    const { session, origin } = request
    const { access, record } = life.allow(call, session === undefined ? 'work' : 'watch', session)
    const role = request.role ?? access.authority
    if (ROLES.indexOf(role) > ROLES.indexOf(access.authority))
      throw new SandwireError('forbidden', `Cannot become ${role}: you may be ${access.authority} here`)
    const asking = { account: identity, owner: record.owner, nowMs: nowMs() }
    const retryAfterMs = ticketWaitMs(store.sharing.outTickets(nowMs()), asking)
    if (retryAfterMs > 0)
      throw new SandwireError('rate_limited', 'Cannot give more tickets now', { retryAfterMs })
    const endsMs = Math.min(nowMs() + ticketMs, expiresMs ?? Number.POSITIVE_INFINITY)
    const ticket: TicketRecord = {
      account: identity,
      name,
      role,
      origin,
      scopes: ticketScopes(scopes),
      ...(login === undefined ? {} : { login }),
      ...(token === undefined ? {} : { token }),
      ...(issuedMs === undefined ? {} : { issuedMs }),
      ...(expiresMs === undefined ? {} : { expiresMs }),
      ...(session === undefined ? {} : { session }),
    }
    store.sharing.insertTicket(request.hash, ticket, endsMs)
    return endsMs
  }

  /** Takes a ticket out for good; undefined when it is not there, has ended or was given to another origin. */
  takeTicket(hash: string, origin: string | null): TakenTicket | undefined {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const ticket = store.sharing.takeTicket(hash, nowMs())
    if (record === undefined || ticket === undefined || ticket.origin !== origin) return undefined
    return { ...ticket, sandbox: record.id }
  }

  #checkRoom(): void {
    const { store, nowMs } = this.#deps
    if (store.sharing.liveGrants(nowMs()).length >= MAX_GRANTS)
      throw new SandwireError('too_many_grants', `Cannot share more than ${MAX_GRANTS} times at once`)
  }

  /** Tells an account what it is about to hold, and then gives it; what cannot be given is withdrawn there. */
  async #announced<T>(account: string, held: HeldGrant, arrival: Arrival, give: () => T): Promise<T> {
    const { holders } = this.#deps
    await holders.tell(account, held, arrival)
    try {
      return give()
    } catch (error) {
      await holders.drop(account, held.grant).catch(() => undefined)
      throw error
    }
  }

  /** Gives a grant to whoever comes first with the secret of its link; no wait in here, so only one does. */
  #exchange(redeemer: Redeemer, grant: string, secretHash: string): HeldGrant {
    const { came, held } = this.#judge(redeemer, grant, secretHash)
    if (came === 'bind') this.#deps.store.sharing.bindGrant(grant, redeemer)
    return held
  }

  /** Whether a grant would be given for a link, or is held already; throws when neither. */
  #judge(
    redeemer: Redeemer,
    grant: string,
    secretHash: string,
  ): { readonly came: 'bind' | 'held'; readonly held: HeldGrant } {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const found = store.sharing.grant(grant)
    if (record === undefined || found === undefined) throw linkSpent()
    const came = exchange(found, {
      owner: record.owner,
      account: redeemer.account,
      isSecretRight: (hash) => isEqualInConstantTime(hash, secretHash),
      nowMs: nowMs(),
    })
    switch (came) {
      case 'spent':
        throw linkSpent()
      case 'own':
        throw new SandwireError('forbidden', 'Cannot join: this is yours already, the link is for others')
      case 'bind':
      case 'held':
        return { came, held: toHeld(found, record) }
    }
  }
}
