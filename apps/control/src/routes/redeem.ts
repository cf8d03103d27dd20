import { SandwireError } from '@sandwire/protocol'
import type { AccountIds } from '../auth/account-id.ts'
import { signInGuest } from '../auth/guest.ts'
import { guestName, type Identity, isGuestLogin, NAMELESS_GUEST } from '../auth/identity.ts'
import { sha256Hex } from '../bytes.ts'
import { mayGetCookie, type SourceSettings } from '../http/source-check.ts'
import { unwrap } from '../outcome.ts'
import type { SandboxCall } from '../sandbox/call.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type HeldGrant, linkSpent, noSuchGrant, parseLink, sandboxOfGrant } from '../sandbox/grants.ts'
import type { IdMint } from '../sandbox/sandbox-id.ts'
import { type App, callFor, callOf } from './context.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { grantParams, heldGrantList, redeemBody, redeemed } from './sharing-schemas.ts'

export interface RedeemDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly accounts: AccountIds
  readonly source: SourceSettings
  /** Share links can be redeemed without an account. */
  readonly hasGuests: boolean
  readonly nowMs: () => number
}

/** A grant as its holder sees it. */
function toHeldGrantView({ session, ownerName, ...held }: HeldGrant) {
  return { ...held, session: session ?? null, owner: ownerName }
}

/** Browsers send their origin with every POST; a client that sends none is not a browser and has no cookies to abuse. */
function isBrowser(headers: Headers, source: SourceSettings): boolean {
  if (!headers.has('origin') && !headers.has('sec-fetch-site')) return false
  if (!mayGetCookie(headers, 'guests', source))
    throw new SandwireError(
      'origin_refused',
      'Cannot join under this host name. Open the whole share link, or ask for a new one.',
    )
  return true
}

/** Redeeming share links, and the grants that the caller holds. */
export function addRedeemRoutes(app: App, guardOf: GuardOf, deps: RedeemDependencies): void {
  const { lookup, mint, accounts, source, hasGuests, nowMs } = deps

  const redeem = async (link: string, call: SandboxCall): Promise<HeldGrant> => {
    const { grant, secret } = parseLink(link) ?? {}
    const sandbox = grant === undefined ? undefined : sandboxOfGrant(grant)
    if (grant === undefined || secret === undefined || sandbox === undefined) throw linkSpent()
    if (!(await mint.isMinted(sandbox))) throw linkSpent()
    const hash = await sha256Hex(secret)
    const outcome = await lookup.sandbox(sandbox).redeemGrant(call, grant, hash)
    if (outcome.ok || outcome.code !== 'too_many_grants') return unwrap(outcome)
    // Listing the grants removes those that no longer exist.
    await lookup.sharedWith(call.identity)
    return unwrap(await lookup.sandbox(sandbox).redeemGrant(call, grant, hash))
  }

  const redeemAsGuest = async (
    link: string,
    guest: SandboxCall,
    previous: Identity | undefined,
    headers: Headers,
  ) => {
    const isPage = isBrowser(headers, source)
    const held = await redeem(link, guest)
    const credential = await signInGuest(
      { account: guest.identity, name: guest.name, held, previous, isBrowser: isPage },
      async (account, signIn, hash) => void unwrap(await lookup.account(account).signIn(signIn, hash)),
      nowMs(),
    )
    return { held, ...credential }
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/grants/redeem',
      request: { body: body(redeemBody) },
      responses: { 200: json(redeemed, "The grant; a guest's browser gets its cookie") },
    }),
    async (context) => {
      const { link, name } = context.req.valid('json')
      const identity = context.get('identity')
      if (!hasGuests || (identity !== undefined && !isGuestLogin(identity.login))) {
        return context.json(toHeldGrantView(await redeem(link, callOf(context))), 200)
      }
      // A random account: a guest who returns without a credential is a new guest.
      const account = identity?.account ?? (await accounts.of('guest', crypto.randomUUID()))
      const displayName = identity?.name ?? guestName(name ?? NAMELESS_GUEST)
      const guest = callFor(context, { account, name: displayName, scopes: [] })
      const { held, cookie, token } = await redeemAsGuest(link, guest, identity, context.req.raw.headers)
      if (cookie !== undefined) context.header('set-cookie', cookie)
      return context.json({ ...toHeldGrantView(held), ...(token === undefined ? {} : { token }) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/account/grants',
      responses: { 200: json(heldGrantList, 'Grants held by the caller, oldest first') },
    }),
    async (context) => {
      const grants = await lookup.sharedWith(callOf(context).identity)
      return context.json({ grants: grants.map(toHeldGrantView) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/account/grants/{grant}',
      request: { params: grantParams },
      responses: { 204: { description: 'The grant is returned and its connections are being closed' } },
    }),
    async (context) => {
      const { grant } = context.req.valid('param')
      const sandbox = sandboxOfGrant(grant)
      if (sandbox === undefined || !(await mint.isMinted(sandbox))) throw noSuchGrant()
      unwrap(await lookup.sandbox(sandbox).leaveGrant(callOf(context), grant))
      return context.body(null, 204)
    },
  )
}
