import { SandwireError } from '@sandwire/protocol'

/** Bytes of keys that send the same in every mode. */
const PLAIN: Readonly<Record<string, string>> = {
  enter: '\r',
  tab: '\t',
  'shift-tab': '\u001b[Z',
  escape: '\u001b',
  space: ' ',
  backspace: '\u007f',
  delete: '\u001b[3~',
  insert: '\u001b[2~',
  'page-up': '\u001b[5~',
  'page-down': '\u001b[6~',
}

/** Final letters of keys whose prefix depends on the cursor key mode. */
const CURSOR: Readonly<Record<string, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  home: 'H',
  end: 'F',
}

export const KEY_NAMES: readonly string[] = [...Object.keys(PLAIN), ...Object.keys(CURSOR), 'ctrl-a … ctrl-z']

/** What a terminal sends for a key. Throws `bad_request` for an unknown one. */
export function bytesOfKey(name: string, isApplicationCursor: boolean): string {
  const key = name.toLowerCase()
  if (Object.hasOwn(PLAIN, key)) return PLAIN[key] ?? ''
  if (Object.hasOwn(CURSOR, key)) return `\u001b${isApplicationCursor ? 'O' : '['}${CURSOR[key] ?? ''}`
  const control = /^(?:ctrl|control)-([a-z])$/.exec(key)?.[1]
  if (control !== undefined) return String.fromCharCode(control.charCodeAt(0) & 0x1f)
  throw new SandwireError(
    'bad_request',
    `Unknown key ${JSON.stringify(name.slice(0, 40))}: expected one of ${KEY_NAMES.join(', ')}`,
  )
}

/** Text as a keyboard sends it: a line feed is the Enter key. */
export function bytesOfText(text: string): string {
  return text.replaceAll('\r\n', '\r').replaceAll('\n', '\r')
}
