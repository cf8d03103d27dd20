import { z } from '@hono/zod-openapi'
import { sandboxIdOfConversation } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import type { Context } from 'hono'
import type { Ceilings } from '../ceilings/ceilings.ts'
import type { CommandPolicy } from '../commands/command-policy.ts'
import type { Config } from '../config.ts'
import { type ConversationCall, CONVERSATION_URL } from '../conversation/call.ts'
import { type ConversationOrder, createConversation } from '../conversation/create.ts'
import type { GatewayGrants } from '../credentials/grants.ts'
import type { AttachLimits } from '../http/rate-limits.ts'
import { checkHandshake, offeredSubprotocols } from '../http/upgrade.ts'
import { readObjectError, unwrap } from '../outcome.ts'
import { CALL_HEADER, type SandboxCall } from '../sandbox/call.ts'
import { type IdMint, parseSandboxRef } from '../sandbox/sandbox-id.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { type App, type AppEnv, callOf, identityOf } from './context.ts'
import {
  conversationList,
  conversationMessageBody,
  conversationParams,
  conversationView,
  createConversationBody,
  deadLetterList,
  entriesQuery,
  entryRange,
  listConversationsQuery,
  messageStored,
  replayed,
  SESSION_ID,
} from './conversation-schemas.ts'
import { body, endpoint, type GuardOf, json } from './endpoint.ts'
import { publishableView, publishConversationBody, publishedView } from './publish-schemas.ts'
import { restoreBody, restorePointsView, toRestorePoints } from './restore-schemas.ts'

const MAX_LISTED = 100
const MAX_ENTRIES = 1_000
const AGENT = 'claude'
const TICKET = 'sandwire.ticket.'

export interface ConversationRouteDependencies {
  readonly lookup: SandboxLookup
  readonly mint: IdMint
  readonly commands: CommandPolicy
  readonly config: Pick<Config, 'runs' | 'conversations'>
  readonly ceilings: Ceilings
  readonly grants: Pick<GatewayGrants, 'check'>
  readonly limits: AttachLimits
  readonly nowMs: () => number
}

/** For the OpenAPI document only; the route decodes the query. */
const described = (description: string) => z.unknown().optional().openapi({ type: 'string', description })
const socketQuery = z.looseObject({
  sessionId: described(
    'Your own name for the conversation, which is created if you have none of that name, or its id',
  ),
  sandbox: described('Id or name of the sandbox of a new conversation; default: a sandbox of its own'),
  after: described('Number of the last entry that you have; default: all are sent'),
})

/** A field that must not be used, and why. */
function refuseField(field: string, problem: string): never {
  throw new SandwireError('bad_request', `Cannot use "${field}": ${problem}`, { details: { field, problem } })
}

function parseSocketQuery(query: URLSearchParams): {
  sessionId: string
  sandbox: string | null
  after: number
} {
  const unknown = [...query.keys()].find((name) => !['sessionId', 'sandbox', 'after'].includes(name))
  if (unknown !== undefined) refuseField(unknown.slice(0, 60), 'unknown')
  const sessionId = query.get('sessionId') ?? ''
  if (!SESSION_ID.test(sessionId)) refuseField('sessionId', 'expected letters, digits and _.:- (max 128)')
  const after = query.get('after') ?? '0'
  if (!/^(0|[1-9][0-9]{0,14})$/.test(after)) refuseField('after', 'expected a number')
  return { sessionId, sandbox: query.get('sandbox'), after: Number(after) }
}

/** `/api/conversations` and `/ws/v2`. */
export function addConversationRoutes(
  app: App,
  guardOf: GuardOf,
  { lookup, mint, commands, config, ceilings, grants, limits, nowMs }: ConversationRouteDependencies,
): void {
  const createDeps = {
    lookup,
    mint,
    runs: config.runs,
    settings: config.conversations,
    ceilings,
    grants,
    nowMs,
  }

  /** An agent works with every right in the sandbox. */
  const sandboxSource = async (call: SandboxCall, ref: string): Promise<ConversationOrder['source']> => {
    const id = await lookup.resolve(call.identity, parseSandboxRef(ref))
    const { action: _action, ...unaudited } = call
    const { access } = unwrap(await lookup.sandbox(id).lastKnown(unaudited))
    if (access === 'viewer') throw new SandwireError('forbidden', 'Cannot do this: you are a viewer')
    return { kind: 'sandbox', id }
  }

  /** The id of a conversation: given as such, or by the caller's own name for it. */
  const findOrCreate = async (
    call: SandboxCall,
    sessionId: string,
    sandbox: string | null,
  ): Promise<string> => {
    if (sandboxIdOfConversation(sessionId) !== undefined) return sessionId
    const known = unwrap(await lookup.account(call.identity).findConversation(sessionId))
    if (known !== null) return known
    // An agent runs any command.
    commands.checkFree(call, AGENT)
    const source = sandbox === null ? ({ kind: 'empty' } as const) : await sandboxSource(call, sandbox)
    const creating = { ...call, action: 'conversation.create' } as const
    return (await createConversation(createDeps, creating, { source, sessionId })).id
  }

  /** Opens the socket of a conversation. A ticket is valid for one conversation, which it names by its id. */
  const open = async (context: Context<AppEnv>): Promise<Response> => {
    const request = context.req.raw
    const { isUpgrade } = checkHandshake(request)
    const { sessionId, sandbox, after } = parseSocketQuery(new URL(request.url).searchParams)
    const call = callOf(context)
    const { ticket } = identityOf(context)
    const offers = offeredSubprotocols(request.headers).filter((name) => !name.startsWith(TICKET))
    if (offers.length > 0)
      throw new SandwireError('version_unsupported', 'Unsupported subprotocol: offer none but a ticket')
    if (!isUpgrade) throw new SandwireError('upgrade_required', 'Cannot connect without a WebSocket upgrade')
    await limits.admit(call)
    if (ticket !== undefined && ticket.session !== sessionId)
      throw new SandwireError('forbidden', 'Cannot use the ticket: it was issued for something else')
    const id = await findOrCreate(call, sessionId, sandbox)
    const conversationCall: ConversationCall = { ...call, after, maySteer: ticket?.role !== 'viewer' }
    const headers = { upgrade: 'websocket', [CALL_HEADER]: JSON.stringify(conversationCall) }
    const response = await (await lookup.conversation(id)).fetch(CONVERSATION_URL, { headers })
    if (response.status !== 101) throw await readObjectError(response)
    return response
  }

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/ws/v2',
      request: { query: socketQuery },
      responses: {
        101: { description: 'A WebSocket with JSON messages of one conversation' },
        426: { description: 'The request is valid but not an upgrade' },
      },
    }),
    open,
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/conversations',
      request: { body: body(createConversationBody) },
      responses: {
        201: json(conversationView, 'The conversation; its sandbox is made with the first message'),
      },
    }),
    async (context) => {
      const call = callOf(context)
      const { repo, ref, sandbox, ...order } = context.req.valid('json')
      commands.checkFree(call, order.agent ?? AGENT)
      if (repo !== undefined && sandbox !== undefined)
        refuseField('sandbox', 'not allowed together with repo')
      if (repo === undefined && ref !== undefined) refuseField('ref', 'only allowed with repo')
      const source =
        repo !== undefined
          ? { kind: 'repo' as const, repo, ...(ref === undefined ? {} : { ref }) }
          : sandbox !== undefined
            ? await sandboxSource(call, sandbox)
            : { kind: 'empty' as const }
      return context.json(await createConversation(createDeps, call, { ...order, source }), 201)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/conversations',
      request: { query: listConversationsQuery },
      responses: { 200: json(conversationList, 'Conversations of the account, newest first') },
    }),
    async (context) => {
      const { limit, before } = context.req.valid('query')
      const count = Math.min(Number(limit ?? MAX_LISTED), MAX_LISTED)
      const listed = unwrap(await lookup.account(callOf(context).identity).conversations(count, before))
      return context.json({ conversations: [...listed] }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/conversations/{conversation}',
      request: { params: conversationParams },
      responses: { 200: json(conversationView, 'The conversation') },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      return context.json(unwrap(await conversation.describe(callOf(context))), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/conversations/{conversation}/entries',
      request: { params: conversationParams, query: entriesQuery },
      responses: {
        200: json(entryRange, 'Entries after a number: the frames that `/ws/v2` sends and stores'),
      },
    }),
    async (context) => {
      const { after, limit } = context.req.valid('query')
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      const count = Math.min(Number(limit ?? MAX_ENTRIES), MAX_ENTRIES)
      const range = unwrap(await conversation.entries(callOf(context), Number(after ?? 0), count))
      return context.json(JSON.parse(range) as z.infer<typeof entryRange>, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/conversations/{conversation}/messages',
      request: { params: conversationParams, body: body(conversationMessageBody) },
      responses: { 202: json(messageStored, 'The message is stored') },
    }),
    async (context) => {
      const { text, id = crypto.randomUUID() } = context.req.valid('json')
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      return context.json(unwrap(await conversation.send(callOf(context), { id, text })), 202)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/conversations/{conversation}/restore-points',
      request: { params: conversationParams },
      responses: { 200: json(restorePointsView, 'Messages with the files that are kept for them') },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      return context.json(toRestorePoints(unwrap(await conversation.restorePoints(callOf(context)))), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/conversations/{conversation}/restore',
      request: { params: conversationParams, body: body(restoreBody) },
      responses: { 202: json(restorePointsView, 'The files are being restored, which ends the program') },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      const points = unwrap(await conversation.restoreFiles(callOf(context), context.req.valid('json')))
      return context.json(toRestorePoints(points), 202)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/conversations/{conversation}/publish',
      request: { params: conversationParams },
      responses: { 200: json(publishableView, 'What would be published; the sandbox must run') },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      return context.json(unwrap(await conversation.showChange(callOf(context))), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/conversations/{conversation}/publish',
      request: { params: conversationParams, body: body(publishConversationBody) },
      responses: { 200: json(publishedView, 'The pushed commit, and the pull request') },
    }),
    async (context) => {
      const { body: text = '', pullRequest = false, repo, ...rest } = context.req.valid('json')
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      const publication = { ...rest, body: text, pullRequest, repo }
      return context.json(unwrap(await conversation.publish(callOf(context), publication)), 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'get',
      path: '/api/conversations/{conversation}/dead-letters',
      request: { params: conversationParams },
      responses: { 200: json(deadLetterList, "Messages that the operator's API did not accept for a day") },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      const deadLetters = unwrap(await conversation.deadLetters(callOf(context)))
      return context.json({ deadLetters: [...deadLetters] }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'post',
      path: '/api/conversations/{conversation}/dead-letters/replay',
      request: { params: conversationParams },
      responses: { 200: json(replayed, 'They are sent again') },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      return context.json({ replayed: unwrap(await conversation.replayDeadLetters(callOf(context))) }, 200)
    },
  )

  app.openapi(
    endpoint(guardOf, {
      method: 'delete',
      path: '/api/conversations/{conversation}',
      request: { params: conversationParams },
      responses: {
        204: { description: 'Deleted, and its sandbox destroyed if it was made for the conversation' },
      },
    }),
    async (context) => {
      const conversation = await lookup.conversation(context.req.valid('param').conversation)
      unwrap(await conversation.remove(callOf(context)))
      return context.body(null, 204)
    },
  )
}
