/** One step of a conversation with `/ws/pty`. */
export type Step =
  /** Opens a connection under a name; `$NAME` in a query is the session that an earlier connection received. */
  | { readonly open: string; readonly query?: Readonly<Record<string, string>> }
  /** Text is sent unchanged. */
  | { readonly to: string; readonly send: object | string }
  /** The first message. */
  | { readonly from: string; readonly startsWith: string }
  /** All messages since the last such step, with adjacent outputs merged. */
  | { readonly from: string; readonly receive: readonly string[] }
  /** The close of a connection. */
  | { readonly from: string; readonly close: { readonly code: number; readonly reason: string } }
  | { readonly leave: string }

/** `$KILLED` in an answer is the exit code of a process that SIGKILL ended. */
export interface Conversation {
  readonly title: string
  readonly steps: readonly Step[]
}

const session = '{"type":"session","session_id":"$TOKEN"}'
const output = (data: string): string =>
  `{"type":"output","data":${JSON.stringify(data)},"session_id":"$TOKEN"}`
const history = (data: string): string => `{"type":"history","data":${JSON.stringify(data)}}`
const exit = (code: number | '$KILLED'): string => `{"type":"exit","code":${code},"session_id":"$TOKEN"}`
const input = (data: string): object => ({ type: 'input', data })

/** Makes any shell print no echo and no prompt, so that every byte is known. */
const QUIET =
  'exec sh -c \'stty -echo; printf "\\033c@%s@" on; while IFS= read -r line; do eval "$line"; done\'\n'
/** Output before this mark is the shell's own. */
export const QUIET_MARK = '\u001bc@on@'

/** Opens a terminal and silences its shell. */
const begin = (name: string, query: Readonly<Record<string, string>> = {}): Step[] => [
  { open: name, query },
  { from: name, startsWith: session },
  { to: name, send: input(QUIET) },
  { from: name, receive: [output(QUIET_MARK)] },
]

const CLIENT_ID = '7f0c2f4e-8a41-4b52-9d39-3e4f5a6b7c8d'
const OTHER_ID = '0d0ddcf1-52a9-4b8e-8a57-6d1a1ed1f0a1'

export const CONVERSATIONS: readonly Conversation[] = [
  {
    title: 'sends input, resize, ping and plain text, and receives the exit',
    steps: [
      ...begin('a'),
      { to: 'a', send: input('printf "%s" one\n') },
      { from: 'a', receive: [output('one')] },
      { to: 'a', send: 'printf "%s" raw\n' },
      { from: 'a', receive: [output('raw')] },
      { to: 'a', send: { type: 'ping' } },
      { from: 'a', receive: ['{"type":"pong"}'] },
      { to: 'a', send: { type: 'resize', cols: 132, rows: 50 } },
      { to: 'a', send: input('stty size\n') },
      { from: 'a', receive: [output('50 132\r\n')] },
      { to: 'a', send: { type: 'resize' } },
      { to: 'a', send: input('stty size\n') },
      { from: 'a', receive: [output('24 80\r\n')] },
      { to: 'a', send: input('exit 3\n') },
      { from: 'a', receive: [exit(3)] },
      { to: 'a', send: { type: 'ping' } },
      { from: 'a', receive: ['{"type":"pong"}'] },
    ],
  },
  {
    title: 'reports the end of a process by a signal',
    steps: [
      ...begin('a'),
      { to: 'a', send: input('kill -9 $$\n') },
      { from: 'a', receive: [exit('$KILLED')] },
    ],
  },
  {
    title: 'shares a session by its name, with history and input from both clients',
    steps: [
      ...begin('a'),
      { open: 'b', query: { session_id: '$a' } },
      { from: 'b', receive: [session, history(QUIET_MARK)] },
      { to: 'b', send: input('printf "%s" two\n') },
      { from: 'a', receive: [output('two')] },
      { from: 'b', receive: [output('two')] },
      { to: 'a', send: input('printf "%s" three\n') },
      { from: 'b', receive: [output('three')] },
    ],
  },
  {
    title: '(drift) maps an id that the client chose to the same session',
    steps: [
      ...begin('a', { session_id: CLIENT_ID, provider: 'shell', session_name: 'Shell 1' }),
      { leave: 'a' },
      {
        open: 'b',
        query: { session_id: CLIENT_ID, provider: 'shell', session_name: 'Shell 1', resume: '1' },
      },
      { from: 'b', receive: [session, history(QUIET_MARK)] },
      { to: 'b', send: input('printf "%s" same\n') },
      { from: 'b', receive: [output('same')] },
      { open: 'c', query: { session_id: CLIENT_ID, force_new: '1' } },
      { from: 'c', startsWith: session },
    ],
  },
  {
    title: '(drift) reports a missing session, but only to a client that resumes',
    steps: [
      { open: 'a', query: { session_id: OTHER_ID, resume: '1' } },
      { from: 'a', receive: ['{"type":"session_not_found"}'] },
      { from: 'a', close: { code: 4001, reason: 'session_not_found' } },
      { open: 'b', query: { session_id: 'swt1.forged.token', resume: '1' } },
      { from: 'b', receive: ['{"type":"session_not_found"}'] },
      { open: 'c', query: { session_id: OTHER_ID } },
      { from: 'c', startsWith: session },
    ],
  },
  {
    title: '(drift) reports errors in the field `data`, which the front end reads',
    steps: [
      ...begin('a'),
      { to: 'a', send: { type: 'resize', cols: 0, rows: -1 } },
      { from: 'a', receive: ['{"type":"error","data":"$TEXT"}'] },
      { to: 'a', send: { type: 'nonsense' } },
      { from: 'a', receive: ['{"type":"error","data":"$TEXT"}'] },
      { to: 'a', send: input('printf "%s" alive\n') },
      { from: 'a', receive: [output('alive')] },
    ],
  },
  {
    title: '(drift) splits no character, neither live nor in the history',
    steps: [
      ...begin('a'),
      {
        to: 'a',
        send: input(
          String.raw`printf '\342'; sleep 0.05; printf '\202\254'; sleep 0.05; printf '\360\237'; sleep 0.05; printf '\230\200.\n'` +
            '\n',
        ),
      },
      { from: 'a', receive: [output('€😀.\r\n')] },
      { open: 'b', query: { session_id: '$a' } },
      { from: 'b', receive: [session, history(`${QUIET_MARK}€😀.\r\n`)] },
    ],
  },
  {
    title: 'refuses an unknown provider',
    steps: [
      { open: 'a', query: { provider: 'claude' } },
      { from: 'a', receive: ['{"type":"error","data":"$TEXT"}'] },
      { from: 'a', close: { code: 4003, reason: "Unknown provider: claude. Available: ['shell']" } },
    ],
  },
]
