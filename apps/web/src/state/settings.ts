import { schema } from '@sandwire/protocol'
import type { AskBeforePaste } from '@sandwire/react'

/** Settings of this browser. */
export interface Settings {
  readonly theme: 'system' | 'light' | 'dark'
  readonly fontSize: number
  readonly fontFamily: string
  readonly copiesOnSelect: boolean
  /** Programs may write to the clipboard. */
  readonly allowsClipboardWrite: boolean
  /** When pasting several lines needs confirmation. */
  readonly asksBeforePaste: AskBeforePaste
  readonly bell: 'none' | 'visual'
  readonly screenReader: boolean
}

export const MIN_FONT_SIZE = 8
export const MAX_FONT_SIZE = 32

export const DEFAULT_SETTINGS: Settings = {
  theme: 'system',
  fontSize: 14,
  fontFamily: '',
  copiesOnSelect: false,
  allowsClipboardWrite: false,
  asksBeforePaste: 'always',
  bell: 'visual',
  screenReader: false,
}

const fields: { readonly [K in keyof Settings]: schema.Schema<Settings[K]> } = {
  theme: schema.oneOf(['system', 'light', 'dark']),
  fontSize: schema.integer(MIN_FONT_SIZE, MAX_FONT_SIZE),
  fontFamily: schema.text(200),
  copiesOnSelect: schema.bool,
  allowsClipboardWrite: schema.bool,
  asksBeforePaste: schema.oneOf(['always', 'would-run', 'never']),
  bell: schema.oneOf(['none', 'visual']),
  screenReader: schema.bool,
}

/** Reads stored settings; missing or invalid ones get their default. */
export function readSettings(text: string | null): Settings {
  let stored: unknown
  try {
    stored = JSON.parse(text ?? 'null')
  } catch {
    // Not ours.
    return DEFAULT_SETTINGS
  }
  if (typeof stored !== 'object' || stored === null) return DEFAULT_SETTINGS
  const known = Object.entries(stored).filter(
    ([key, value]) => Object.hasOwn(fields, key) && fields[key as keyof Settings].decode(value) !== undefined,
  )
  return { ...DEFAULT_SETTINGS, ...Object.fromEntries(known) }
}
