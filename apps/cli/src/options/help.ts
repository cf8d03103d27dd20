import { isCommandName } from '../commands/names.ts'

export const HELP = `sbx-stdio: attach this terminal or pipe to a process in a sandbox

Usage: sbx-stdio URL [options] [-- COMMAND [ARGUMENT ...]]
       sbx-stdio COMMAND [options]

Sandboxes
  list                   list your sandboxes
  create [NAME]          create a sandbox: network, limits, variables
  start, stop NAME       start or stop a sandbox (files stay)
  checkpoint NAME        save the files of a sandbox
  checkpoints NAME       list its saved versions
  restore NAME@VERSION   go back to a saved version
  fork NAME@VERSION NEW  make a sandbox from a saved version
  diff NAME@VERSION ...  list what differs between two versions
  rm NAME                remove a sandbox and its files
  logs NAME              show its log, including blocked hosts
  cp SOURCE TARGET       copy files and folders; one side is SANDBOX:PATH
  ls SANDBOX:PATH        list a folder

Sessions
  sessions [NAME]        list sessions, and how to attach to them
  kill SESSION           end a session
  tmux SANDBOX           use tmux in a sandbox: its screen, its windows and panes
  templates              list the server's command templates

Coding agents
  agent "TASK"           have an agent work on this git work tree, and apply its changes
  runs                   list runs of agents
  run ACTION RUN         show, events, say, approve, abort or diff

Accounts and sharing
  login, logout [URL]    sign in to a server, or out
  whoami                 show your account
  usage                  show what your sandboxes use, and how much they may use
  share SANDBOX          create a link that gives someone access
  join                   use such a link
  grants [SANDBOX]       list who has access to a sandbox, or what is shared with you
  revoke GRANT           revoke access that you gave
  leave GRANT            give up access that you got
  audit                  show who did what in your sandboxes

  version                same as --version
  help [COMMAND]         show help

  Commands take --json and --help. They use the server on this machine, or the one you are signed in to.

Attach
  URL                    http(s):// or ws(s):// address; the default path is /attach
  -- COMMAND ...         command to run (default: the login shell)
  --cmd COMMAND          the same, with one --arg per argument
  --arg ARGUMENT         (repeatable)
  --template ID          run a command template of the server, with one --param per parameter
  --param NAME=VALUE     (repeatable)
  --pane ID              show a pane of tmux instead of running a command
  --sandbox NAME         sandbox to run in, by name or id; created if it does not exist (default: "default", or the
                         server's only one)
  --no-create            fail if the sandbox does not exist (also --create=0)
  --cwd DIR              start folder, inside the workspace
  --env NAME[=VALUE]     variable for the command (repeatable); without a value, copied from this shell
  --tty, --no-tty        with or without a terminal (default: with, if stdin and stdout are terminals)

Session
  --session ID           join a session instead of starting one; a unique prefix of the id is enough
  --role ROLE            driver (default), collaborator (types, does not resize) or viewer (watches)
  --take                 take over from the current driver
  --name TEXT            name that others see, on servers without accounts (default: your user name)
  --keep SECONDS         how long the session is kept while no client is attached (default: 60)
  --lifetime SECONDS     end the session after this time (default: the server's limit)
  --idle SECONDS         end the session after this time without input and output while a client is attached
  --pin                  keep the sandbox running while the command runs, even without input and output
  --overflow WHAT        when no client is attached and the output log is full: block the command (default without a
                         terminal), or trim the oldest output (default with one)

Connection
  --token-file FILE      file with the token; read again for each connection (default: SBX_TOKEN, then your sign-in,
                         then the token file of a server on this machine)
  --token TOKEN          the token itself; other users may see it, so prefer --token-file or SBX_TOKEN
  --retry-for SECONDS    how long to try to reconnect (default: 600)
  --escape KEY           key that detaches from a terminal: ^] (default), another such as ^A, or none
  --quiet                print errors only
  --help, --version

Keys and signals
  With a terminal, every key goes to the command, except Ctrl+], which detaches and prints how to reattach.
  SIGTERM, SIGHUP, SIGINT and SIGQUIT detach as well, and restore the terminal.
  Without a terminal, these signals are forwarded to the command. Sent twice while the connection is down, or
  three times within three seconds, they detach.

Exit status
  the command's; 128 + n if signal n ended it; 0 after Ctrl+]; 126 or 127 if the command cannot be run or
  found; 2 for wrong usage; 255 if the connection failed

Environment
  SBX_TOKEN              token, if no option gives one
  SBX_URL                server for list, create and the other commands
  TERM, COLORTERM, LANG and LC_* are sent with a terminal
`

/** Replaces `help` and `help COMMAND` by `--help` and `COMMAND --help`. */
export function expandHelpCommand(argv: readonly string[]): readonly string[] {
  const [first, second] = argv
  if (first !== 'help') return argv
  return isCommandName(second) ? [second, '--help'] : ['--help']
}

/** Narrower terminals get lines of this width. */
const MIN_COLUMNS = 60
/** Least column of a description; a line that is indented less is a paragraph of its own. */
const MIN_HANG = 15
/** A name and its description. */
const ROW = /^( {2,}\S(?:.*?\S)?) {2,}(?=\S)/

/** A paragraph, or a row of a table. */
interface Block {
  /** The first line up to its text. */
  readonly head: string
  /** Indentation of the other lines. */
  readonly hang: number
  readonly isRow: boolean
  text: string
}

function parseBlock(line: string): Block {
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

/** Wraps a help text for a terminal that is too narrow for it. */
export function wrapHelp(help: string, columns: number | undefined): string {
  const lines = help.split('\n')
  if (columns === undefined || lines.every((line) => line.length <= columns)) return help
  const blocks: Block[] = []
  for (const block of lines.map(parseBlock)) {
    const last = blocks.at(-1)
    if (last !== undefined && block.text !== '' && continues(last, block)) last.text += ` ${block.text}`
    else blocks.push(block)
  }
  return blocks.map((block) => wrap(block, Math.max(columns, MIN_COLUMNS))).join('\n')
}
