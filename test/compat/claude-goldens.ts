/** One step of a conversation with `/ws/claude-stream`. */
export type ClaudeStep =
  /** Opens a connection under a name; `$NAME` in a query is the session that an earlier connection received. */
  | { readonly open: string; readonly query?: Readonly<Record<string, string>> }
  /** Text is sent unchanged. */
  | { readonly to: string; readonly send: object | string }
  /** All messages since the last such step. Lines of the program are shortened to what matters; see `shorten`. */
  | { readonly from: string; readonly receive: readonly string[] }
  /** The close of a connection. */
  | { readonly from: string; readonly close: { readonly code: number; readonly reason: string } }
  | { readonly leave: string }
  /** Ends the program of the newest session from outside. */
  | 'end the program'

/** `sprites` are sandboxes too, but their sessions are another implementation. */
export type ClaudeMode = 'local' | 'sandbox' | 'sprites'

export interface ClaudeConversation {
  readonly title: string
  /** Default: one of the modes with the same implementation, and sprites. */
  readonly modes?: readonly ClaudeMode[]
  readonly steps: readonly ClaudeStep[]
}

const connected = (resumed: boolean, settings: object = {}): string =>
  JSON.stringify({
    type: 'system',
    subtype: 'connected',
    session_id: '$TOKEN',
    resumed,
    settings: { max_thinking_tokens: null, model: 'default', ...settings },
  })
const user = (message: string): object => ({ type: 'user', message })
const error = '{"type":"system","subtype":"error","message":"$TEXT"}'
const notFound = '{"type":"system","subtype":"session_not_found","message":"$TEXT"}'
const init = 'system/init'
/** A turn in which the model repeats what it was sent. */
const turn = (said: string): string[] => [`assistant: ${said}`, 'result/success']

/** A PNG of one pixel. */
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const CLIENT_ID = '7f0c2f4e-8a41-4b52-9d39-3e4f5a6b7c8d'
const OTHER_ID = '0d0ddcf1-52a9-4b8e-8a57-6d1a1ed1f0a1'

/** The model repeats the last message, except that it runs a command for `run`. */
export const CLAUDE_CONVERSATIONS: readonly ClaudeConversation[] = [
  {
    title: 'connects, takes messages and controls, and passes the lines of the program on',
    modes: ['local', 'sandbox', 'sprites'],
    steps: [
      { open: 'a', query: { mode: 'ask', max_thinking_tokens: '2000', force_new: '1' } },
      { from: 'a', receive: [connected(false, { max_thinking_tokens: 2000 })] },
      { to: 'a', send: { type: 'control', subtype: 'initialize', capabilities: { permissions: true } } },
      {
        from: 'a',
        receive: [
          '{"type":"system","subtype":"echo","payload":{"type":"control","subtype":"initialize","capabilities":{"permissions":true}}}',
        ],
      },
      { to: 'a', send: { type: 'ping' } },
      { from: 'a', receive: ['{"type":"pong"}'] },
      { to: 'a', send: user('one') },
      { from: 'a', receive: [init, ...turn('one')] },
      {
        to: 'a',
        send: { type: 'user', message: { role: 'user', content: [{ type: 'text', text: 'two' }] } },
      },
      { from: 'a', receive: [init, ...turn('two')] },
      { to: 'a', send: 'three' },
      { from: 'a', receive: [init, ...turn('three')] },
      { to: 'a', send: { type: 'control', subtype: 'set_permission_mode', mode: 'act' } },
      { from: 'a', receive: ['control_response/success'] },
      { to: 'a', send: { type: 'nonsense' } },
      { from: 'a', receive: [error] },
    ],
  },
  {
    title: 'asks for permission: a client that joins gets the open request, and the first answer counts',
    steps: [
      { open: 'a' },
      { from: 'a', receive: [connected(false)] },
      { to: 'a', send: user('run') },
      { from: 'a', receive: [init, 'assistant: Bash', 'control_request/can_use_tool'] },
      { open: 'b', query: { session_id: '$a', resume: '1' } },
      { from: 'b', receive: [connected(true), init, 'control_request/can_use_tool'] },
      {
        to: 'b',
        send: {
          type: 'control_response',
          request_id: '$REQUEST',
          decision: 'allow',
          tool_input: {},
          permission_suggestions: [{ type: 'addRules', behavior: 'allow', rules: [{ toolName: 'Bash' }] }],
        },
      },
      {
        from: 'a',
        receive: ['control_cancel_request', 'user: ran', ...turn('Done')],
      },
      { from: 'b', receive: ['user: ran', ...turn('Done')] },
      // The rule holds for the rest of the session.
      { to: 'b', send: user('again') },
      { from: 'b', receive: [init, 'assistant: Bash', 'user: ran', ...turn('Done')] },
    ],
  },
  {
    title: 'sends images and names of files, and is interrupted',
    steps: [
      { open: 'a' },
      { from: 'a', receive: [connected(false)] },
      { to: 'a', send: { ...user('look'), images: [{ data: PIXEL, mimeType: 'image/png' }] } },
      { from: 'a', receive: [init, ...turn('image/png')] },
      { to: 'a', send: { ...user('read'), context_files: ['no.txt', 'such.txt'] } },
      { from: 'a', receive: [init, ...turn('@no.txt @such.txt')] },
      { to: 'a', send: user('long') },
      { from: 'a', receive: [init] },
      { to: 'a', send: { type: 'control', subtype: 'interrupt' } },
      {
        from: 'a',
        receive: [
          'control_response/success',
          'user: [Request interrupted by user]',
          'result/error_during_execution',
        ],
      },
      { to: 'a', send: user('one') },
      { from: 'a', receive: [init, ...turn('one')] },
    ],
  },
  {
    title:
      'maps an id that the client chose to the same session, and continues it after its program has ended',
    modes: ['local', 'sandbox'],
    steps: [
      { open: 'a', query: { session_id: CLIENT_ID } },
      { from: 'a', receive: [connected(false)] },
      { to: 'a', send: user('one') },
      { from: 'a', receive: [init, ...turn('one')] },
      { leave: 'a' },
      { open: 'b', query: { session_id: CLIENT_ID, resume: '1' } },
      { from: 'b', receive: [connected(true), init] },
      'end the program',
      { from: 'b', receive: [error, '{"type":"result","subtype":"exit","exit_code":0}'] },
      { from: 'b', close: { code: 1000, reason: 'complete' } },
      { open: 'c', query: { session_id: CLIENT_ID, resume: '1' } },
      { from: 'c', receive: [connected(true)] },
      { to: 'c', send: user('remember') },
      { from: 'c', receive: [init, ...turn('one, remember')] },
      { open: 'd', query: { session_id: CLIENT_ID, force_new: '1' } },
      { from: 'd', receive: [connected(false)] },
    ],
  },
  {
    title:
      '(drift) maps an id that the client chose to the same session, which is missing after its program has ended',
    modes: ['sprites'],
    steps: [
      { open: 'a', query: { session_id: CLIENT_ID } },
      { from: 'a', receive: [connected(false)] },
      { to: 'a', send: user('one') },
      { from: 'a', receive: [init, ...turn('one')] },
      { leave: 'a' },
      { open: 'b', query: { session_id: CLIENT_ID, resume: '1' } },
      { from: 'b', receive: [connected(true), init] },
      { to: 'b', send: user('remember') },
      { from: 'b', receive: [init, ...turn('one, remember')] },
      'end the program',
      { from: 'b', receive: ['{"type":"result","subtype":"exit","exit_code":143}'] },
      { from: 'b', close: { code: 1000, reason: 'complete' } },
      { open: 'c', query: { session_id: CLIENT_ID, resume: '1' } },
      { from: 'c', receive: [notFound] },
      { from: 'c', close: { code: 4001, reason: 'session_not_found' } },
      { open: 'd', query: { session_id: CLIENT_ID } },
      { from: 'd', receive: [connected(false)] },
      { open: 'e', query: { session_id: '$b', resume: '1' } },
      { from: 'e', receive: [notFound] },
    ],
  },
  {
    title: 'reports a missing session, but only to a client that resumes',
    steps: [
      { open: 'a', query: { session_id: OTHER_ID, resume: '1' } },
      { from: 'a', receive: [notFound] },
      { from: 'a', close: { code: 4001, reason: 'session_not_found' } },
      { open: 'b', query: { session_id: 'swt1.forged.token', resume: '1' } },
      { from: 'b', receive: [notFound] },
    ],
  },
  {
    title: 'refuses parameters that it does not know',
    steps: [
      { open: 'a', query: { mode: 'nonsense' } },
      { from: 'a', receive: [error] },
      { from: 'a', close: { code: 4004, reason: 'bad_request' } },
    ],
  },
]
