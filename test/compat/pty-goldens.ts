/** One step of a conversation with `/ws/pty`. */
export type Step =
  /** Opens a connection under a name of the test's own; `$NAME` in a query is the session that an earlier one was told. */
  | { readonly open: string; readonly query?: Readonly<Record<string, string>> }
  /** A text is sent as it is. */
  | { readonly to: string; readonly say: object | string }
  /** The first message, whatever follows it. */
  | { readonly from: string; readonly begins: string }
  /** Everything that came since this was last asked, neighboring outputs as one. */
  | { readonly from: string; readonly hear: readonly string[] }
  /** The end of a connection. */
  | { readonly from: string; readonly close: { readonly code: number; readonly reason: string } }
  | { readonly leave: string }

export interface Conversation {
  readonly about: string
  readonly steps: readonly Step[]
}

const session = '{"type":"session","session_id":"$TOKEN"}'
const output = (data: string): string =>
  `{"type":"output","data":${JSON.stringify(data)},"session_id":"$TOKEN"}`
const history = (data: string): string => `{"type":"history","data":${JSON.stringify(data)}}`
const exit = (code: number | null): string => `{"type":"exit","code":${code},"session_id":"$TOKEN"}`
const input = (data: string): object => ({ type: 'input', data })

/** Turns whatever shell there is into one that echoes and prompts nothing, so that every byte is known. */
const QUIET =
  'exec sh -c \'stty -echo; printf "\\033c@%s@" on; while IFS= read -r line; do eval "$line"; done\'\n'
/** Up to here output is the shell's own. */
export const QUIET_MARK = '\u001bc@on@'

/** Opens a terminal whose every byte is known from there on. */
const begin = (name: string, query: Readonly<Record<string, string>> = {}): Step[] => [
  { open: name, query },
  { from: name, begins: session },
  { to: name, say: input(QUIET) },
  { from: name, hear: [output(QUIET_MARK)] },
]

const CLIENT_ID = '7f0c2f4e-8a41-4b52-9d39-3e4f5a6b7c8d'
const OTHER_ID = '0d0ddcf1-52a9-4b8e-8a57-6d1a1ed1f0a1'

export const CONVERSATIONS: readonly Conversation[] = [
  {
    about: 'types, resizes, pings, sends text that is no JSON, and hears the end',
    steps: [
      ...begin('a'),
      { to: 'a', say: input('printf "%s" one\n') },
      { from: 'a', hear: [output('one')] },
      { to: 'a', say: 'printf "%s" raw\n' },
      { from: 'a', hear: [output('raw')] },
      { to: 'a', say: { type: 'ping' } },
      { from: 'a', hear: ['{"type":"pong"}'] },
      { to: 'a', say: { type: 'resize', cols: 132, rows: 50 } },
      { to: 'a', say: input('stty size\n') },
      { from: 'a', hear: [output('50 132\r\n')] },
      { to: 'a', say: { type: 'resize' } },
      { to: 'a', say: input('stty size\n') },
      { from: 'a', hear: [output('24 80\r\n')] },
      { to: 'a', say: input('exit 3\n') },
      { from: 'a', hear: [exit(3)] },
      { to: 'a', say: { type: 'ping' } },
      { from: 'a', hear: ['{"type":"pong"}'] },
    ],
  },
  {
    about: 'hears null for a process that a signal ended',
    steps: [...begin('a'), { to: 'a', say: input('kill -9 $$\n') }, { from: 'a', hear: [exit(null)] }],
  },
  {
    about: 'shares one session by the name that was told, with what was before and both keyboards',
    steps: [
      ...begin('a'),
      { open: 'b', query: { session_id: '$a' } },
      { from: 'b', hear: [session, history(QUIET_MARK)] },
      { to: 'b', say: input('printf "%s" two\n') },
      { from: 'a', hear: [output('two')] },
      { from: 'b', hear: [output('two')] },
      { to: 'a', say: input('printf "%s" three\n') },
      { from: 'b', hear: [output('three')] },
    ],
  },
  {
    about: '(drift) an id that the client made up keeps leading to the session it first got',
    steps: [
      ...begin('a', { session_id: CLIENT_ID, provider: 'shell', session_name: 'Shell 1' }),
      { leave: 'a' },
      {
        open: 'b',
        query: { session_id: CLIENT_ID, provider: 'shell', session_name: 'Shell 1', resume: '1' },
      },
      { from: 'b', hear: [session, history(QUIET_MARK)] },
      { to: 'b', say: input('printf "%s" same\n') },
      { from: 'b', hear: [output('same')] },
      { open: 'c', query: { session_id: CLIENT_ID, force_new: '1' } },
      { from: 'c', begins: session },
    ],
  },
  {
    about: '(drift) a session that is not there is said so, and to nobody who does not resume',
    steps: [
      { open: 'a', query: { session_id: OTHER_ID, resume: '1' } },
      { from: 'a', hear: ['{"type":"session_not_found"}'] },
      { from: 'a', close: { code: 4001, reason: 'session_not_found' } },
      { open: 'b', query: { session_id: 'swt1.forged.token', resume: '1' } },
      { from: 'b', hear: ['{"type":"session_not_found"}'] },
      { open: 'c', query: { session_id: OTHER_ID } },
      { from: 'c', begins: session },
    ],
  },
  {
    about: '(drift) what goes wrong is said where the front end reads it, in data',
    steps: [
      ...begin('a'),
      { to: 'a', say: { type: 'resize', cols: 0, rows: -1 } },
      { from: 'a', hear: ['{"type":"error","data":"$TEXT"}'] },
      { to: 'a', say: { type: 'nonsense' } },
      { from: 'a', hear: ['{"type":"error","data":"$TEXT"}'] },
      { to: 'a', say: input('printf "%s" alive\n') },
      { from: 'a', hear: [output('alive')] },
    ],
  },
  {
    about: '(drift) no character is cut, neither live nor in what was before',
    steps: [
      ...begin('a'),
      {
        to: 'a',
        say: input(
          String.raw`printf '\342'; sleep 0.05; printf '\202\254'; sleep 0.05; printf '\360\237'; sleep 0.05; printf '\230\200.\n'` +
            '\n',
        ),
      },
      { from: 'a', hear: [output('€😀.\r\n')] },
      { open: 'b', query: { session_id: '$a' } },
      { from: 'b', hear: [session, history(`${QUIET_MARK}€😀.\r\n`)] },
    ],
  },
  {
    about: 'is refused for a provider that there is not',
    steps: [
      { open: 'a', query: { provider: 'claude' } },
      { from: 'a', hear: ['{"type":"error","data":"$TEXT"}'] },
      { from: 'a', close: { code: 4003, reason: "Unknown provider: claude. Available: ['shell']" } },
    ],
  },
]
