export const HELP = `sbx-stdio: attaches this terminal or pipe to a process in a sandbox

Usage: sbx-stdio URL [options] [-- COMMAND [ARGUMENT ...]]

  URL                    http(s):// or ws(s):// address; without a path, /attach is meant
  -- COMMAND ...         what to run (default: the login shell)
  --cmd COMMAND          the same, with one --arg for each argument
  --arg ARGUMENT         (repeatable)
  --sandbox ID           sandbox to run in
  --cwd DIR              folder to start in, inside the workspace
  --env NAME[=VALUE]     variable for the command (repeatable); without a value, this shell's
  --tty, --no-tty        with or without a terminal (default: with, if stdin and stdout are one)

Sessions
  --session ID           join a session instead of starting one
  --role ROLE            driver (default), collaborator (types, does not resize) or viewer (watches)
  --take                 take over from whoever drives
  --name TEXT            how others in the session see you (default: your user name)
  --keep SECONDS         how long the session lives while nobody is attached (default: 60)
  --overflow WHAT        while nobody is attached and its log is full: block the command (default without
                         a terminal), or trim the oldest output (default with one)

Connection
  --token-file FILE      file that holds the token; read again for each connection
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
  TERM, COLORTERM, LANG and LC_* are passed on with a terminal
`
