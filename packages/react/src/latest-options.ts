import type { AttachRequest } from '@sandwire/client'
import type { OwnTerminalProps } from './terminal.tsx'
import type { TerminalOptions } from './terminal/controller.ts'

function requestOf(props: OwnTerminalProps): AttachRequest {
  const { sandbox, create, session, cmd, args, template, params, cwd, role, take, keepSeconds, overflow } =
    props
  const all = {
    sandbox,
    create,
    session,
    cmd,
    args,
    template,
    params,
    cwd,
    role,
    take,
    keepSeconds,
    overflow,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/**
 * The options of a terminal that a component creates: the target is read once, callbacks and settings on every use.
 */
export function latestOptions(read: () => OwnTerminalProps): TerminalOptions {
  const { url, appearance, size } = read()
  return {
    url,
    request: requestOf(read()),
    ...(appearance === undefined ? {} : { appearance }),
    ...(size === undefined ? {} : { size }),
    get getTicket() {
      return read().getTicket
    },
    get allowsClipboardWrite() {
      return read().allowsClipboardWrite
    },
    get copiesOnSelect() {
      return read().copiesOnSelect
    },
    get asksBeforePaste() {
      return read().asksBeforePaste
    },
    get confirmPaste() {
      return read().confirmPaste
    },
    get confirmLink() {
      return read().confirmLink
    },
    get onOpenFile() {
      return read().onOpenFile
    },
    get onBell() {
      return read().onBell
    },
  }
}
