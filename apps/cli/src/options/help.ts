import { isCommandName } from '../commands/names.ts'

export const HELP = `sbx-stdio: attaches this terminal or pipe to a process in a sandbox

Usage: sbx-stdio URL [options] [-- COMMAND [ARGUMENT ...]]
       sbx-stdio COMMAND [options]

  list                   your sandboxes
  create [NAME]          make one: network, limits, variables
  start, stop, rm NAME   start, stop (files stay), or remove one (files too)
  sessions [NAME]        what runs in them, and how to come back to it
  kill SESSION           end a session
  logs NAME              what happened in a sandbox, hosts that were blocked among it
  cp SOURCE TARGET       copy files and folders; one side is SANDBOX:PATH
  ls SANDBOX:PATH        list a folder of a sandbox
  templates              commands that the server has ready
  version                the same as --version
  help [COMMAND]         this, or what a command takes

  login, logout [URL]    sign in to a server, and out again
  whoami                 who it takes you for
  share SANDBOX          make a link for somebody else: to watch, or to work there
  join                   use such a link
  grants [SANDBOX]       who may use a sandbox of yours, or what others share with you
  revoke GRANT           withdraw what you shared
  leave GRANT            give back what others share with you
  audit                  who did what in your sandboxes
                         Each takes --json and --help, and finds a server on this machine, or the one that you
                         signed in to, by itself.

Attach
  URL                    http(s):// or ws(s):// address; without a path, /attach is meant
  -- COMMAND ...         what to run (default: the login shell)
  --cmd COMMAND          the same, with one --arg for each argument
  --arg ARGUMENT         (repeatable)
  --template ID          run a command that the server has ready, with one --param for each parameter
  --param NAME=VALUE     (repeatable)
  --sandbox NAME         sandbox to run in, by name or id; made if there is none of that name. Without it, the one
                         called "default", or whatever the server calls its own
  --no-create            only if there is one (also --create=0)
  --cwd DIR              folder to start in, joinLocalPath the workspace
  --env NAME[=VALUE]     variable for the command (repeatable); without a value, this shell's
  --tty, --no-tty        with or without a terminal (default: with, if stdin and stdout are one)

Sessions
  --session ID           join a session instead of starting one; the beginning of its id is enough where only one
                         begins so
  --role ROLE            driver (default), collaborator (types, does not resize) or viewer (watches)
  --take                 take over from whoever drives
  --name TEXT            how others in the session see you, where the server has no accounts (default: your user
                         name); where it has, they see the name of your account
  --keep SECONDS         how long the session lives while nobody is attached (default: 60)
  --pin                  keep the sandbox awake while the command runs, also when nothing is read or written
  --overflow WHAT        while nobody is attached and its log is full: block the command (default without
                         a terminal), or trim the oldest output (default with one)

Connection
  --token-file FILE      file that holds the token; read again for each connection
                         (default: SBX_TOKEN, or what login stored for this server, or the file of a server that
                         runs on this machine)
  --token TOKEN          the token itself; other users may glimpse it, so prefer --token-file or SBX_TOKEN
  --retry-for SECONDS    how long to try to come back after the link is lost (default: 600)
  --escape KEY           key that detaches from a terminal: ^] (default), another such as ^A, or none
  --quiet                no talk on stderr but errors
  --help, --version

Keys and signals
  With a terminal, every key goes to the command but Ctrl+], which detaches and says how to come back.
  SIGTERM, SIGHUP, SIGINT and SIGQUIT detach as well, after putting the terminal right.
  Without one, those signals are passed on to the command. Twice while the link is down, or three times
  within three seconds, they detach.

Exit status
  the command's; 128 + n if signal n ended it; 0 after Ctrl+]; 126 or 127 if the command cannot be run or
  found; 2 for wrong usage; 255 if the connection failed or is lost for good

Environment
  SBX_TOKEN              the token, if neither option gives it
  SBX_URL                the server that list, create and so on ask
  TERM, COLORTERM, LANG and LC_* are passed on with a terminal
`

/** A command line in which `help`, and `help COMMAND`, are spelled with `--help`. */
export function expandHelpCommand(argv: readonly string[]): readonly string[] {
  const [first, second] = argv
  if (first !== 'help') return argv
  return isCommandName(second) ? [second, '--help'] : ['--help']
}

/** Narrower terminals get lines of this width all the same. */
const MIN_COLUMNS = 60
/** Where descriptions begin; what is less far to the right is a text of its own. */
const MIN_HANG = 15
/** A name and its description. */
const ROW = /^( {2,}\S(?:.*?\S)?) {2,}(?=\S)/

/** Lines that belong together. */
interface Block {
  /** What the first line begins with, up to its text. */
  readonly head: string
  /** Where the other lines begin. */
  readonly hang: number
  readonly isRow: boolean
  text: string
}

function readBlock(line: string): Block {
  const [head] = ROW.exec(line) ?? []
  if (head !== undefined) return { head, hang: head.length, isRow: true, text: line.slice(head.length) }
  const [start = ''] = /^(Usage: | *)/.exec(line) ?? []
  const isRow = start.startsWith('Usage') || /^ *-/.test(line)
  return { head: start, hang: start.length, isRow, text: line.slice(start.length) }
}

function continues(block: Block, { head, hang, isRow }: Block): boolean {
  if (isRow || block.text === '' || head.trim() !== '') return false
  return block.isRow ? hang >= MIN_HANG && hang === block.hang : hang === block.hang
}

function wrap({ head, hang, text }: Block, columns: number): string {
  const lines: string[] = []
  let line = head
  let isEmpty = true
  for (const word of text.split(' ')) {
    if (!isEmpty && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = ' '.repeat(hang)
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return [...lines, line].join('\n')
}

/** A help text for a terminal: broken between words where it is too wide, and as it is where it fits. */
export function wrapHelp(help: string, columns: number | undefined): string {
  const lines = help.split('\n')
  if (columns === undefined || lines.every((line) => line.length <= columns)) return help
  const blocks: Block[] = []
  for (const block of lines.map(readBlock)) {
    const last = blocks.at(-1)
    if (last !== undefined && block.text !== '' && continues(last, block)) last.text += ` ${block.text}`
    else blocks.push(block)
  }
  return blocks.map((block) => wrap(block, Math.max(columns, MIN_COLUMNS))).join('\n')
}
