import { sandboxIdOfConversation, sandboxIdOfRun } from '@sandwire/internal-api'
import { ROLES, SandwireError } from '@sandwire/protocol'
import type { GrantSource } from '../account/store.ts'
import { isEqualInConstantTime } from '../bytes.ts'
import type { SandboxCall } from './call.ts'
import {
  decideRedemption,
  type GrantRecord,
  type HeldGrant,
  linkSpent,
  MAX_GRANTS,
  mintGrantId,
  noSuchGrant,
  toHeld,
} from './grants.ts'
import type { HolderIndex } from './holder-index.ts'
import type { SandboxLifecycle } from './lifecycle.ts'
import type { Revocation } from './revocation.ts'
import type { SandboxSessions } from './sessions.ts'
import type { SandboxStore } from './store.ts'
import { ticketScopes, ticketWaitMs, type TicketRecord, type TicketRequest } from './tickets.ts'

export interface GrantRequest {
  readonly session?: string
  readonly role: GrantRecord['role']
  readonly lifeMs: number
  readonly label: string
  /** SHA-256 of the share link's secret. */
  readonly linkHash?: string
  /** Account that gets the grant at once, instead of a share link. */
  readonly account?: string
}

/** Account that redeems a share link. */
export interface Redeemer {
  readonly account: string
  readonly name: string
}

/** A valid ticket and its sandbox. */
export type TakenTicket = TicketRecord & { readonly sandbox: string }

export interface SharingDependencies {
  readonly lifecycle: SandboxLifecycle
  readonly sessions: SandboxSessions
  /** Throws `run_not_found` unless there is such a run. */
  readonly checkRun: (run: string) => Promise<void>
  /** Throws `not_found` unless there is such a conversation. */
  readonly checkConversation: (conversation: string) => Promise<void>
  readonly store: SandboxStore
  readonly revocation: Pick<Revocation, 'disconnect'>
  readonly holders: Pick<HolderIndex, 'add' | 'remove' | 'deliver'>
  /** Lifetime of tickets. */
  readonly ticketMs: number
  readonly nowMs: () => number
  readonly random: (bytes: Uint8Array) => Uint8Array
}

/** Grants of a sandbox, and the tickets of every account with access to it. */
export class SandboxSharing {
  readonly #deps: SharingDependencies

  constructor(deps: SharingDependencies) {
    this.#deps = deps
  }

  async grant(call: SandboxCall, request: GrantRequest): Promise<GrantRecord> {
    const { lifecycle, sessions, checkRun, checkConversation, store, nowMs, random } = this.#deps
    const { session, role, lifeMs, label, linkHash, account } = request
    lifecycle.authorize(call, 'own', session)
    // A grant on a session or run that does not exist would look like success.
    if (session !== undefined && sandboxIdOfRun(session) !== undefined) await checkRun(session)
    else if (session !== undefined && sandboxIdOfConversation(session) !== undefined)
      await checkConversation(session)
    else if (session !== undefined) await sessions.show(call, session)
    const { record } = lifecycle.authorize(call, 'own')
    if (account === record.owner) throw new SandwireError('bad_request', 'Cannot share with yourself')
    this.#checkLimit()
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
    const insert = (): void => {
      lifecycle.authorize(call, 'own')
      this.#checkLimit()
      store.sharing.insertGrant(made, linkHash)
    }
    if (account === undefined) insert()
    else await this.#indexed(account, toHeld(made, record), 'assigned', insert)
    return made
  }

  grants(call: SandboxCall): readonly GrantRecord[] {
    const { lifecycle, store, nowMs } = this.#deps
    lifecycle.authorize(call, 'own')
    return store.sharing.liveGrants(nowMs())
  }

  /** Revokes a grant and closes its connections; on request also ends the sessions that its holder started by it. */
  async revoke(call: SandboxCall, grant: string, endsSessions: boolean): Promise<void> {
    const { lifecycle, store, revocation, holders, nowMs } = this.#deps
    lifecycle.authorize(call, 'own')
    if (!store.sharing.removeGrant(grant, nowMs())) throw noSuchGrant()
    await revocation.disconnect({ grant, ...(endsSessions ? { endSessions: true } : {}) })
    await holders.deliver()
  }

  /** Removes a grant that the caller holds, and closes its connections. */
  async leave({ identity }: SandboxCall, grant: string): Promise<void> {
    const { store, revocation, holders, nowMs } = this.#deps
    if (this.held(identity, grant) === undefined) throw noSuchGrant()
    store.sharing.removeGrant(grant, nowMs())
    await revocation.disconnect({ grant })
    await holders.deliver()
  }

  /** Redeems a share link. */
  async redeem(redeemer: Redeemer, grant: string, secretHash: string): Promise<HeldGrant> {
    const { account } = redeemer
    const { held } = this.#validate(redeemer, grant, secretHash)
    return this.#indexed(account, held, 'redeemed', () => this.#bind(redeemer, grant, secretHash))
  }

  /** A grant as its holder sees it; undefined when the account does not hold it. */
  held(account: string, grant: string): HeldGrant | undefined {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const found = store.sharing.grant(grant)
    if (record === undefined || found?.holder?.account !== account || found.expiresMs <= nowMs())
      return undefined
    return toHeld(found, record)
  }

  /** Stores a ticket with the caller's current access; returns when it expires. */
  issueTicket(call: SandboxCall, request: TicketRequest): number {
    const { lifecycle, store, nowMs, ticketMs } = this.#deps
    const { identity, name, scopes, login, token, issuedMs, expiresMs } = call
    const { session, origin } = request
    const { access, record } = lifecycle.authorize(call, session === undefined ? 'work' : 'watch', session)
    const role = request.role ?? access.authority
    if (ROLES.indexOf(role) > ROLES.indexOf(access.authority))
      throw new SandwireError('forbidden', `Cannot become ${role}: you may be ${access.authority} here`)
    const requester = { account: identity, owner: record.owner, nowMs: nowMs() }
    const retryAfterMs = ticketWaitMs(store.sharing.liveTickets(nowMs()), requester)
    if (retryAfterMs > 0) throw new SandwireError('rate_limited', 'Too many unused tickets', { retryAfterMs })
    const ticketExpiresMs = Math.min(nowMs() + ticketMs, expiresMs ?? Number.POSITIVE_INFINITY)
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
    store.sharing.insertTicket(request.hash, ticket, ticketExpiresMs)
    return ticketExpiresMs
  }

  /** Uses up a ticket; undefined when it does not exist, has expired or belongs to another origin. */
  takeTicket(hash: string, origin: string | null): TakenTicket | undefined {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const ticket = store.sharing.takeTicket(hash, nowMs())
    if (record === undefined || ticket === undefined || ticket.origin !== origin) return undefined
    return { ...ticket, sandbox: record.id }
  }

  #checkLimit(): void {
    const { store, nowMs } = this.#deps
    if (store.sharing.liveGrants(nowMs()).length >= MAX_GRANTS)
      throw new SandwireError('too_many_grants', `Cannot have more than ${MAX_GRANTS} grants on a sandbox`)
  }

  /** Adds a grant to the account's index, then stores it; removes it from the index if that fails. */
  async #indexed<T>(account: string, held: HeldGrant, source: GrantSource, insert: () => T): Promise<T> {
    const { holders } = this.#deps
    await holders.add(account, held, source)
    try {
      return insert()
    } catch (error) {
      await holders.remove(account, held.grant)
      throw error
    }
  }

  /** Gives the grant to the first redeemer of its link. Synchronous, so that there is only one. */
  #bind(redeemer: Redeemer, grant: string, secretHash: string): HeldGrant {
    const { result, held } = this.#validate(redeemer, grant, secretHash)
    if (result === 'bind') this.#deps.store.sharing.bindGrant(grant, redeemer)
    return held
  }

  /** Throws unless the link can be redeemed or its grant is held already. */
  #validate(
    redeemer: Redeemer,
    grant: string,
    secretHash: string,
  ): { readonly result: 'bind' | 'held'; readonly held: HeldGrant } {
    const { store, nowMs } = this.#deps
    const record = store.read()
    const found = store.sharing.grant(grant)
    if (record === undefined || found === undefined) throw linkSpent()
    const result = decideRedemption(found, {
      owner: record.owner,
      account: redeemer.account,
      isSecretRight: (hash) => isEqualInConstantTime(hash, secretHash),
      nowMs: nowMs(),
    })
    switch (result) {
      case 'spent':
        throw linkSpent()
      case 'own':
        throw new SandwireError(
          'forbidden',
          'Cannot join: this sandbox is yours; the share link is for others',
        )
      case 'bind':
      case 'held':
        return { result, held: toHeld(found, record) }
    }
  }
}
