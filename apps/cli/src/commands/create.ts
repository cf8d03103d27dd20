import { shellQuote } from '@sandwire/shell-quote'
import { printable } from '../text/printable.ts'
import { spellJson } from '../text/table.ts'
import type { Command } from './command.ts'
import { CREATE_FIELDS, readCreateBody } from './create-body.ts'
import { readOptionalSandbox } from './positionals.ts'
import { decodeSandbox } from './views.ts'

/** Makes a sandbox and says how to get in. */
export const create: Command = {
  help: `Usage: sbx-stdio create [NAME] [options]

Makes a sandbox, starts it, and prints its name. Without NAME the server makes one up.

  --network POLICY     none (the server's default), allowlist, or open (every public host)
  --allow HOST         with allowlist: a host, *.host, host:port, or a set such as set:npm, set:pypi, set:debian,
                       set:github, set:crates, set:go (repeatable; implies --network allowlist)
  --memory SIZE        such as 512M or 2G
  --disk SIZE          room for its files
  --cpus NUMBER        such as 0.5 or 2
  --pids NUMBER        processes and threads
  --sleep-after TIME   stop after so long without input and output: 90s, 10m, 2h, or never
  --env NAME[=VALUE]   variable of every process in it (repeatable); never a secret
  --no-start           only make it
`,
  options: {
    network: 'once',
    allow: 'repeatable',
    memory: 'once',
    disk: 'once',
    cpus: 'once',
    pids: 'once',
    'sleep-after': 'once',
    env: 'repeatable',
    'no-start': 'flag',
  },
  fields: CREATE_FIELDS,
  read: (words, env) => {
    const name = readOptionalSandbox(words)
    const body = readCreateBody(words, name, env)
    return {
      ...(name === undefined ? {} : { sandbox: name }),
      run: async ({ api, io, isJson, program, server }) => {
        const answer = await api.request('POST', '/api/sandboxes', body)
        if (isJson) {
          io.print(spellJson(answer))
          return
        }
        const made = printable(decodeSandbox(answer).name)
        io.print(`${made}\n`)
        io.say(`run something in it: ${program} ${shellQuote(server)} --sandbox ${shellQuote(made)}`)
      },
    }
  },
}
