import { audit } from './audit.ts'
import type { Command } from './command.ts'
import { cp } from './cp.ts'
import { create } from './create.ts'
import { grants } from './grants.ts'
import { join } from './join.ts'
import { kill } from './kill.ts'
import { leave } from './leave.ts'
import { list } from './list.ts'
import { login } from './login.ts'
import { logout } from './logout.ts'
import { logs } from './logs.ts'
import type { CommandName } from './names.ts'
import { revoke } from './revoke.ts'
import { ls } from './ls.ts'
import { rm } from './rm.ts'
import { sessions } from './sessions.ts'
import { share } from './share.ts'
import { start } from './start.ts'
import { stop } from './stop.ts'
import { templates } from './templates.ts'
import { whoami } from './whoami.ts'

/** Every command by its name. */
export const COMMANDS: Readonly<Record<CommandName, Command>> = {
  list,
  create,
  start,
  stop,
  rm,
  sessions,
  kill,
  logs,
  cp,
  ls,
  templates,
  login,
  logout,
  whoami,
  share,
  grants,
  revoke,
  leave,
  join,
  audit,
}
