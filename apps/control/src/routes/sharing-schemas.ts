import { z } from '@hono/zod-openapi'
import { ROLES } from '@sandwire/protocol'
import { MAX_GUEST_NAME_CHARS } from '../auth/identity.ts'
import { DEFAULT_GRANT_SECONDS, MAX_GRANT_SECONDS, parseLink } from '../sandbox/grants.ts'

const MAX_LABEL_CHARS = 80
const MIN_GRANT_SECONDS = 1

const timeMs = z.int().openapi({ description: 'Milliseconds since 1970.' })

/** One line of display text without control or direction characters. */
function line(maxChars: number) {
  const error = `expected one line of at most ${maxChars} characters`
  return (
    z
      .string({ error })
      // UTF-16 units, as in the protocol; zod's own limit counts characters.
      .refine((text) => text.length <= maxChars, { error })
      .refine((text) => text.trim() === text && text.isWellFormed() && !/\p{C}|\p{Zl}|\p{Zp}/u.test(text), {
        error,
      })
  )
}

const grantRole = z.enum(['viewer', 'collaborator'])
const SECONDS_RULE = `expected a whole number from ${MIN_GRANT_SECONDS} to ${MAX_GRANT_SECONDS}`
const target = {
  sandbox: z.string().optional().openapi({ description: 'Id or name; optional with a session.' }),
  session: z.string().optional(),
}
const hasTarget = ({ sandbox, session }: { sandbox?: string | undefined; session?: string | undefined }) =>
  sandbox !== undefined || session !== undefined
const TARGET_RULE = { error: 'expected a sandbox or a session' }

/** Body of `POST /api/grants`. */
export const createGrantBody = z
  .strictObject({
    ...target,
    role: grantRole.default('viewer').openapi({ description: 'A collaborator can type, also in a shell.' }),
    expiresSeconds: z
      .int({ error: SECONDS_RULE })
      .min(MIN_GRANT_SECONDS, { error: SECONDS_RULE })
      .max(MAX_GRANT_SECONDS, { error: SECONDS_RULE })
      .default(DEFAULT_GRANT_SECONDS),
    label: line(MAX_LABEL_CHARS).default(''),
    account: z
      .string()
      .max(128)
      .optional()
      .openapi({ description: 'Grant it to this account at once, without a share link.' }),
  })
  .refine(hasTarget, TARGET_RULE)
  .openapi('CreateGrant')

export const grantMade = z
  .object({
    grant: z.string(),
    link: z.string().optional().openapi({ description: 'Share link; shown once, valid once.' }),
    role: grantRole,
    session: z.string().nullable(),
    sandbox: z.string(),
    expiresMs: timeMs,
    notice: z.string().optional().openapi({ description: 'Consequences to point out to the owner.' }),
  })
  .openapi('GrantMade')

/** A grant as the sandbox's owner sees it. */
const grantView = z
  .object({
    grant: z.string(),
    session: z.string().nullable(),
    role: grantRole,
    label: z.string(),
    createdMs: timeMs,
    expiresMs: timeMs,
    state: z.enum(['open', 'held']).openapi({ description: 'open: its share link was not redeemed yet.' }),
    account: z.string().nullable(),
    name: z.string().nullable().openapi({ description: 'Name of the holder.' }),
  })
  .openapi('Grant')
export const grantList = z.object({ sandbox: z.string(), grants: z.array(grantView) }).openapi('Grants')
export const grantsQuery = z.strictObject({
  sandbox: z.string().openapi({ description: 'Id or name.' }),
})
export const grantParams = z.object({
  grant: z.string().openapi({ param: { name: 'grant', in: 'path' } }),
})

export const revokeQuery = z.strictObject({
  endSessions: z
    .enum(['0', '1'])
    .optional()
    .openapi({ description: '1: also end the sessions that were started by the grant. Default 0.' }),
})

/** Body of `POST /api/grants/redeem`. */
export const redeemBody = z
  .strictObject({
    link: z
      .string()
      .refine((text) => parseLink(text) !== undefined, 'expected the part of a share link after the #')
      .openapi({ description: 'The part of the share link after the #.' }),
    name: line(MAX_GUEST_NAME_CHARS).min(1).optional().openapi({ description: 'Display name of a guest.' }),
  })
  .openapi('RedeemGrant')

const held = {
  grant: z.string(),
  sandbox: z.string(),
  sandboxName: z.string().optional(),
  session: z.string().nullable(),
  role: grantRole,
  owner: z.string().openapi({ description: 'Name of the owner.' }),
  expiresMs: timeMs,
}
/** A grant as its holder sees it. */
const heldGrant = z.object(held).openapi('HeldGrant')
export const heldGrantList = z.object({ grants: z.array(heldGrant) }).openapi('HeldGrants')
export const redeemed = z
  .object({
    ...held,
    token: z.string().optional().openapi({
      description: 'Credential of a guest without a browser. Shown once; expires with the grant.',
    }),
  })
  .openapi('Redeemed')

/** Body of `POST /api/tickets`. */
export const ticketBody = z
  .strictObject({
    ...target,
    role: z.enum(ROLES).optional().openapi({ description: 'Highest role of the connection.' }),
    origin: z
      .string()
      .refine(
        (text) => URL.canParse(text) && new URL(text).origin === text,
        'expected an origin, such as https://app.example',
      )
      .optional()
      .openapi({
        description:
          'Origin of the page that will use it, for programs: of this server or in SANDWIRE_EMBED_ORIGINS. A page gets tickets for its own origin.',
      }),
  })
  .refine(hasTarget, TARGET_RULE)
  .openapi('CreateTicket')
export const ticketMade = z
  .object({
    ticket: z
      .string()
      .openapi({ description: 'Offer `sandwire.ticket.` followed by this, next to `sandwire.v1`.' }),
    expiresMs: timeMs,
  })
  .openapi('Ticket')
