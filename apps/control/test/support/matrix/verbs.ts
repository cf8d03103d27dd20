import { mintHex } from '../wire.ts'
import type { Requirement } from './rules.ts'

/** What requests are sent to. */
export interface Target {
  /** Account name of the caller. */
  readonly name?: string
  readonly sandbox: string
  readonly session: string
  readonly grant: string
  /** An ended run in the sandbox. */
  readonly run: string
  /** A conversation in the sandbox that has not begun. */
  readonly conversation: string
}

/** A request over HTTP, or the upgrade to a WebSocket. */
export interface MatrixRequest {
  readonly path: string
  readonly json?: unknown
  /** The response does not end; only its status and headers are compared. */
  readonly streams?: boolean
  /** Opens a socket, with a bearer token or a ticket. */
  readonly socket?: 'bearer' | 'compat' | 'text' | { readonly ticketFor: unknown }
}

/** One way to use a route. */
export interface Verb extends Requirement {
  /** Distinguishes verbs of one route. */
  readonly how?: string
  readonly request: (target: Target) => MatrixRequest
  /** Changes the fixture or the account, so that an allowed request needs one of its own. */
  readonly changes?: 'target' | 'account'
  /** The error code of an allowed request that cannot succeed on the fixture. */
  readonly expectedError?: string
}

const plain = (path: string, json?: unknown): Verb => ({
  request: () => ({ path, ...(json === undefined ? {} : { json }) }),
})
const ofSandbox = (path: string, json?: unknown): Verb => ({
  names: 'sandbox',
  request: ({ sandbox }) => ({
    path: path.replace(':sandbox', sandbox),
    ...(json === undefined ? {} : { json }),
  }),
})
const ofSession = (path: string): Verb => ({
  names: 'session',
  request: ({ sandbox, session }) => ({
    path: path.replace(':sandbox', sandbox).replace(':session', session),
  }),
})

const ofRun = (path: string, json?: unknown): Verb => ({
  names: 'run',
  request: ({ run }) => ({ path: path.replace(':run', run), ...(json === undefined ? {} : { json }) }),
})
/** The run of the fixture has ended, which is only told to those who may steer it. */
const steering = (path: string, json?: unknown): Verb[] => [
  { ...ofRun(path, json), drives: true, expectedError: 'run_ended' },
]

const ofConversation = (path: string, json?: unknown): Verb => ({
  names: 'conversation',
  request: ({ conversation }) => ({
    path: path.replace(':conversation', conversation),
    ...(json === undefined ? {} : { json }),
  }),
})

/** Joins as viewer and as driver. */
const join = (path: string): Verb[] => [
  { ...ofSession(`${path}role=viewer`), how: 'as viewer', request: socket(`${path}role=viewer`) },
  { ...ofSession(path), how: 'as driver', drives: true, request: socket(`${path}role=driver`) },
]

function socket(path: string): Verb['request'] {
  return ({ sandbox, session }) => ({
    path: path.replace(':sandbox', sandbox).replace(':session', session),
    socket: 'bearer',
  })
}

/** The workspace contains the key and the socket of sandboxd, and no git repository. */
const W = '/api/workspaces/:sandbox'
const UPLOAD = `${W}/uploads/${'0'.repeat(32)}`
const expectingError = (expectedError: string, verb: Verb): Verb[] => [{ ...verb, expectedError }]
const ofNothing = (path: string, json?: unknown): Verb[] =>
  expectingError('file_not_found', ofSandbox(path, json))
const ofGit = (path: string, json?: unknown): Verb[] =>
  expectingError('not_a_repository', ofSandbox(path, json))

const OF_WORKSPACES: Readonly<Record<string, readonly Verb[]>> = {
  [`GET ${W}/tree`]: [ofSandbox(`${W}/tree?path=.`)],
  [`GET ${W}/stat`]: [ofSandbox(`${W}/stat?path=key`)],
  [`GET ${W}/file`]: [ofSandbox(`${W}/file?path=key`)],
  [`PUT ${W}/file`]: [ofSandbox(`${W}/file?path=written`, {})],
  [`DELETE ${W}/file`]: ofNothing(`${W}/file?path=none`),
  [`POST ${W}/mkdir`]: expectingError('file_exists', ofSandbox(`${W}/mkdir`, { path: 'made' })),
  [`POST ${W}/rename`]: ofNothing(`${W}/rename`, { from: 'none', to: 'other' }),
  [`POST ${W}/copy`]: ofNothing(`${W}/copy`, { from: 'none', to: 'other' }),
  'PUT /api/workspaces/:sandbox/uploads/:id': expectingError(
    'conflict',
    ofSandbox(`${UPLOAD}?path=uploaded&offset=0`, {}),
  ),
  'GET /api/workspaces/:sandbox/uploads/:id': ofNothing(`${UPLOAD}?path=none`),
  'POST /api/workspaces/:sandbox/uploads/:id': expectingError(
    'conflict',
    ofSandbox(UPLOAD, { path: 'none', size: 0 }),
  ),
  'DELETE /api/workspaces/:sandbox/uploads/:id': ofNothing(`${UPLOAD}?path=none`),
  [`GET ${W}/archive`]: [ofSandbox(`${W}/archive?path=.`)],
  [`PUT ${W}/archive`]: expectingError('bad_request', ofSandbox(`${W}/archive?path=.`, {})),
  [`GET ${W}/watch`]: [
    {
      names: 'sandbox',
      request: ({ sandbox }) => ({ path: `/api/workspaces/${sandbox}/watch?path=.`, streams: true }),
    },
  ],
  'GET /api/sandboxes/:sandbox/tmux': [ofSandbox('/api/sandboxes/:sandbox/tmux')],
  'POST /api/sandboxes/:sandbox/tmux': expectingError(
    'conflict',
    ofSandbox('/api/sandboxes/:sandbox/tmux', { type: 'kill_pane', pane: '%999' }),
  ),
  'GET /api/sandboxes/:sandbox/tmux/events': [
    {
      names: 'sandbox',
      request: ({ sandbox }) => ({ path: `/api/sandboxes/${sandbox}/tmux/events`, streams: true }),
    },
  ],
  [`GET ${W}/find`]: [ofSandbox(`${W}/find?q=key&path=.`)],
  [`GET ${W}/search`]: [ofSandbox(`${W}/search?q=nothing&path=.`)],
  [`GET ${W}/git/repositories`]: [ofSandbox(`${W}/git/repositories`)],
  [`GET ${W}/git/status`]: ofGit(`${W}/git/status`),
  [`GET ${W}/git/diff`]: ofGit(`${W}/git/diff?path=key`),
  [`GET ${W}/git/show`]: ofGit(`${W}/git/show?path=key&ref=HEAD`),
  [`GET ${W}/git/log`]: ofGit(`${W}/git/log`),
  [`GET ${W}/git/branches`]: ofGit(`${W}/git/branches`),
  [`POST ${W}/git/stage`]: ofGit(`${W}/git/stage`, { paths: ['key'] }),
  [`POST ${W}/git/unstage`]: ofGit(`${W}/git/unstage`, { paths: ['key'] }),
  [`POST ${W}/git/discard`]: ofGit(`${W}/git/discard`, { paths: ['key'] }),
  [`POST ${W}/git/commit`]: ofGit(`${W}/git/commit`, { message: 'x' }),
  'GET /api/tree': [ofSandbox('/api/tree?sandbox=:sandbox')],
  'GET /api/file': [ofSandbox('/api/file?path=key&sandbox=:sandbox')],
  'PUT /api/file': [ofSandbox('/api/file?path=written&sandbox=:sandbox', { content: 'x' })],
  'DELETE /api/file': ofNothing('/api/file?path=none&sandbox=:sandbox'),
  'POST /api/file/rename': ofNothing('/api/file/rename?sandbox=:sandbox', {
    old_path: 'none',
    new_path: 'other',
  }),
  'POST /api/file/move': ofNothing('/api/file/move?sandbox=:sandbox', { src_path: 'none', dest_dir: '.' }),
  'GET /api/search': [ofSandbox('/api/search?q=key&sandbox=:sandbox')],
  'GET /api/git/status': [ofSandbox('/api/git/status?sandbox=:sandbox')],
  'GET /api/git/diff': [ofSandbox('/api/git/diff?path=key&sandbox=:sandbox')],
  'GET /api/git/show': [ofSandbox('/api/git/show?path=key&sandbox=:sandbox')],
  'GET /api/sessions': [ofSandbox('/api/sessions?sandbox=:sandbox')],
  'POST /api/sessions': [plain('/api/sessions')],
  'GET /api/capabilities': [plain('/api/capabilities')],
  'GET /api/config': [plain('/api/config')],
  'GET /api/project': [plain('/api/project')],
}

/** The requests of every route. A route without an entry fails the matrix. */
export const VERBS: Readonly<Record<string, readonly Verb[]>> = {
  'GET /health': [plain('/health')],
  'GET /healthz': [plain('/healthz')],
  'GET /readyz': [plain('/readyz')],
  'GET /metrics': [plain('/metrics')],
  'GET /': [plain('/')],
  'GET /assets/:file': [plain('/assets/none.js')],
  'GET /signin': [plain('/signin')],
  'GET /signin.js': [plain('/signin.js')],
  'GET /signin/start': [plain('/signin/start')],
  'GET /signin/callback': [plain('/signin/callback')],
  'GET /signin/callback/:issuer': [plain('/signin/callback/none')],
  'GET /join': [plain('/join')],
  'GET /join.js': [plain('/join.js')],
  'GET /page.css': [plain('/page.css')],
  'POST /api/signin': [plain('/api/signin', { code: 'x'.repeat(32) })],
  'POST /api/signout': [{ ...plain('/api/signout'), changes: 'account' }],
  'GET /api/auth': [plain('/api/auth')],
  'GET /api/whoami': [plain('/api/whoami')],
  'GET /api/openapi.json': [plain('/api/openapi.json')],
  'GET /api/sandboxes': [plain('/api/sandboxes')],
  'POST /api/sandboxes': [{ ...plain('/api/sandboxes', { start: false }), changes: 'account' }],
  'GET /api/sandboxes/:sandbox': [ofSandbox('/api/sandboxes/:sandbox')],
  'DELETE /api/sandboxes/:sandbox': [{ ...ofSandbox('/api/sandboxes/:sandbox'), changes: 'target' }],
  'POST /api/sandboxes/:sandbox/start': [ofSandbox('/api/sandboxes/:sandbox/start')],
  'POST /api/sandboxes/:sandbox/stop': [
    { ...ofSandbox('/api/sandboxes/:sandbox/stop?discard=1'), changes: 'target' },
  ],
  'GET /api/sandboxes/:sandbox/checkpoints': [ofSandbox('/api/sandboxes/:sandbox/checkpoints')],
  // The fixture has no store of versions.
  'POST /api/sandboxes/:sandbox/checkpoints': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/checkpoints', {}),
  ),
  'DELETE /api/sandboxes/:sandbox/checkpoints/:version': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/checkpoints/none'),
  ),
  'POST /api/sandboxes/:sandbox/checkpoints/:version/restore': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/checkpoints/none/restore'),
  ),
  'PUT /api/sandboxes/:sandbox/retention': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/retention', {}),
  ),
  'GET /api/account/retention': [plain('/api/account/retention')],
  'PUT /api/account/retention': [{ ...plain('/api/account/retention', {}), changes: 'account' }],
  'POST /api/sandboxes/:sandbox/checkpoints/rebuild': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/checkpoints/rebuild'),
  ),
  'POST /api/sandboxes/:sandbox/checkpoints/:version/fork': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/checkpoints/none/fork', { name: 'forked' }),
  ),
  'GET /api/sandboxes/:sandbox/checkpoints/:version/diff': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/checkpoints/none/diff'),
  ),
  'GET /files/:sandbox': expectingError('not_found', ofSandbox('/files/:sandbox')),
  'GET /files/:sandbox/:path': expectingError('not_found', ofSandbox('/files/:sandbox/workspace/a')),
  'GET /api/sandboxes/:sandbox/events': expectingError(
    'not_found',
    ofSandbox('/api/sandboxes/:sandbox/events'),
  ),
  'PUT /api/sandboxes/:sandbox/env': [ofSandbox('/api/sandboxes/:sandbox/env', { env: {} })],
  'POST /api/sandboxes/:sandbox/exec': [ofSandbox('/api/sandboxes/:sandbox/exec', { cmd: 'true' })],
  'POST /api/sandboxes/:sandbox/sessions': [
    {
      ...ofSandbox('/api/sandboxes/:sandbox/sessions', { cmd: 'true', keep: 1 }),
      how: 'a command of one’s own',
      scope: 'exec',
    },
    { ...ofSandbox('/api/sandboxes/:sandbox/sessions', { template: 'nothing', keep: 1 }), how: 'a template' },
  ],
  'GET /api/sandboxes/:sandbox/sessions/:session/output': [
    ofSession('/api/sandboxes/:sandbox/sessions/:session/output'),
  ],
  'DELETE /api/account': [
    { changes: 'account', request: ({ name }) => ({ path: '/api/account', json: { confirm: name } }) },
  ],
  // None of the callers is an operator.
  'DELETE /api/accounts/:account': [plain(`/api/accounts/u${'0'.repeat(32)}`, { confirm: 'x' })],
  'GET /api/account/usage': [plain('/api/account/usage')],
  'GET /api/account/sign-ins': [plain('/api/account/sign-ins')],
  'DELETE /api/account/sign-ins/:login': [
    { ...plain('/api/account/sign-ins/another'), expectedError: 'not_found' },
  ],
  'GET /api/account/sessions': [plain('/api/account/sessions')],
  'GET /api/account/sessions/:session': [ofSession('/api/account/sessions/:session')],
  'DELETE /api/account/sessions/:session': [
    { ...ofSession('/api/account/sessions/:session'), changes: 'target' },
  ],
  'PUT /api/account/sessions/:session/pin': [ofSession('/api/account/sessions/:session/pin')],
  'DELETE /api/account/sessions/:session/pin': [ofSession('/api/account/sessions/:session/pin')],
  'GET /api/audit': [plain('/api/audit')],
  'GET /api/account/grants': [plain('/api/account/grants')],
  'DELETE /api/account/grants/:grant': [
    {
      names: 'grant',
      heldBy: 'collaborator',
      changes: 'target',
      request: ({ grant }) => ({ path: `/api/account/grants/${grant}` }),
    },
  ],
  'POST /api/grants': [
    {
      names: 'sandbox',
      how: 'of a sandbox',
      request: ({ sandbox }) => ({ path: '/api/grants', json: { sandbox, expiresSeconds: 60 } }),
    },
    {
      names: 'session',
      how: 'of a session',
      request: ({ session }) => ({ path: '/api/grants', json: { session, expiresSeconds: 60 } }),
    },
  ],
  'GET /api/grants': [
    { names: 'sandbox', request: ({ sandbox }) => ({ path: `/api/grants?sandbox=${sandbox}` }) },
  ],
  'DELETE /api/grants/:grant': [
    { names: 'grant', changes: 'target', request: ({ grant }) => ({ path: `/api/grants/${grant}` }) },
  ],
  'POST /api/grants/redeem': [
    {
      expectedError: 'link_spent',
      request: ({ grant }) => ({
        path: '/api/grants/redeem',
        json: { link: `${grant}.${'x'.repeat(43)}` },
      }),
    },
  ],
  'POST /api/tickets': [
    {
      names: 'session',
      how: 'to join',
      request: ({ session }) => ({ path: '/api/tickets', json: { session, role: 'viewer' } }),
    },
    {
      names: 'sandbox',
      how: 'to start',
      need: 'work',
      request: ({ sandbox }) => ({ path: '/api/tickets', json: { sandbox } }),
    },
  ],
  'POST /api/runs': [
    {
      names: 'sandbox',
      how: 'in a sandbox',
      need: 'work',
      changes: 'target',
      request: ({ sandbox }) => ({ path: '/api/runs', json: { sandbox, task: 'x' } }),
    },
  ],
  'GET /api/agents': [plain('/api/agents')],
  'GET /api/runs': [plain('/api/runs')],
  'POST /api/conversations': [
    plain('/api/conversations', {}),
    {
      names: 'sandbox',
      how: 'in a sandbox',
      need: 'work',
      request: ({ sandbox }) => ({ path: '/api/conversations', json: { sandbox } }),
    },
  ],
  'GET /api/conversations': [plain('/api/conversations')],
  'GET /api/conversations/:conversation': [ofConversation('/api/conversations/:conversation')],
  'GET /api/conversations/:conversation/entries': [
    ofConversation('/api/conversations/:conversation/entries'),
  ],
  'POST /api/conversations/:conversation/messages': [
    // An empty message is refused after the rights are checked, so that no agent starts.
    {
      ...ofConversation('/api/conversations/:conversation/messages', { text: ' ' }),
      drives: true,
      expectedError: 'bad_request',
    },
  ],
  'GET /api/conversations/:conversation/dead-letters': [
    ofConversation('/api/conversations/:conversation/dead-letters'),
  ],
  'POST /api/conversations/:conversation/dead-letters/replay': [
    ofConversation('/api/conversations/:conversation/dead-letters/replay'),
  ],
  'GET /api/conversations/:conversation/restore-points': [
    ofConversation('/api/conversations/:conversation/restore-points'),
  ],
  'POST /api/conversations/:conversation/restore': expectingError(
    'conflict',
    ofConversation('/api/conversations/:conversation/restore', { undo: true }),
  ),
  // It has not begun.
  'GET /api/conversations/:conversation/publish': expectingError(
    'conflict',
    ofConversation('/api/conversations/:conversation/publish'),
  ),
  'POST /api/conversations/:conversation/publish': expectingError(
    'conflict',
    ofConversation('/api/conversations/:conversation/publish', { branch: 'b', title: 'x' }),
  ),
  'DELETE /api/conversations/:conversation': [
    { ...ofConversation('/api/conversations/:conversation'), changes: 'target' },
  ],
  'GET /api/runs/:run': [ofRun('/api/runs/:run')],
  'GET /api/runs/:run/events': [ofRun('/api/runs/:run/events')],
  // The agent of the fixture could not be started.
  'GET /api/runs/:run/diff': [{ ...ofRun('/api/runs/:run/diff'), expectedError: 'not_found' }],
  'POST /api/runs/:run/messages': steering('/api/runs/:run/messages', { text: 'x' }),
  'POST /api/runs/:run/approvals/:request': steering('/api/runs/:run/approvals/r', { decision: 'deny' }),
  'POST /api/runs/:run/interrupt': steering('/api/runs/:run/interrupt'),
  'POST /api/runs/:run/abort': [{ ...ofRun('/api/runs/:run/abort'), drives: true }],
  'POST /api/runs/:run/publish': [
    { ...ofRun('/api/runs/:run/publish', { branch: 'b', title: 'x' }), expectedError: 'conflict' },
  ],
  'GET /api/runs/:run/restore-points': [ofRun('/api/runs/:run/restore-points')],
  'POST /api/runs/:run/restore': expectingError('conflict', ofRun('/api/runs/:run/restore', { undo: true })),
  'DELETE /api/runs/:run': [{ ...ofRun('/api/runs/:run'), changes: 'target' }],
  'GET /api/templates': [plain('/api/templates')],
  'GET /logs/:sandbox': [ofSandbox('/logs/:sandbox')],
  ...OF_WORKSPACES,
  'GET /attach': [
    {
      names: 'sandbox',
      how: 'to start',
      need: 'work',
      scope: 'exec',
      request: ({ sandbox }) => ({
        path: `/attach?sandbox=${sandbox}&cmd=true&keep=1&createId=${mintHex()}`,
        socket: 'bearer',
      }),
    },
    {
      names: 'sandbox',
      how: 'to start a template',
      need: 'work',
      request: ({ sandbox }) => ({
        path: `/attach?sandbox=${sandbox}&template=nothing&keep=1&createId=${mintHex()}`,
        socket: 'bearer',
      }),
    },
    ...join('/attach?session=:session&'),
    {
      names: 'session',
      how: 'with a ticket',
      request: ({ session }) => ({
        path: `/attach?session=${session}&role=viewer`,
        socket: { ticketFor: { session, role: 'viewer' } },
      }),
    },
    {
      names: 'session',
      how: 'with a ticket to drive',
      drives: true,
      request: ({ session }) => ({
        path: `/attach?session=${session}&role=driver`,
        socket: { ticketFor: { session, role: 'driver' } },
      }),
    },
  ],
  'GET /terminal/:session': [
    ...join('/terminal/:session?'),
    ...[
      { how: 'as text to watch', query: 'role=viewer', drives: false },
      { how: 'as text to drive', query: 'role=driver', drives: true },
    ].map(({ how, query, drives }): Verb => ({
      names: 'session',
      how,
      drives,
      request: ({ session }) => ({ path: `/terminal/${session}?${query}`, socket: 'text' }),
    })),
  ],
  'GET /ws/v2': [
    {
      names: 'conversation',
      how: 'to watch',
      request: ({ conversation }) => ({ path: `/ws/v2?sessionId=${conversation}`, socket: 'compat' }),
    },
    {
      names: 'sandbox',
      how: 'to begin',
      need: 'work',
      scope: 'exec',
      request: ({ sandbox }) => ({
        path: `/ws/v2?sessionId=${mintHex()}&sandbox=${sandbox}`,
        socket: 'compat',
      }),
    },
  ],
  'GET /ws/claude-stream': [
    {
      names: 'sandbox',
      how: 'to start',
      need: 'work',
      scope: 'exec',
      request: ({ sandbox }) => ({ path: `/ws/claude-stream?sandbox=${sandbox}`, socket: 'compat' }),
      // The agents of the fixture end at once.
      expectedError: 'run_ended',
    },
  ],
  'GET /ws/pty': [
    {
      names: 'sandbox',
      how: 'to start',
      need: 'work',
      scope: 'exec',
      request: ({ sandbox }) => ({ path: `/ws/pty?sandbox=${sandbox}`, socket: 'compat' }),
    },
    {
      names: 'sandbox',
      how: 'to start a template',
      need: 'work',
      request: ({ sandbox }) => ({ path: `/ws/pty?sandbox=${sandbox}&provider=nothing`, socket: 'compat' }),
    },
    {
      names: 'session',
      how: 'to join',
      request: ({ session }) => ({ path: `/ws/pty?session_id=${session}`, socket: 'compat' }),
    },
  ],
}
