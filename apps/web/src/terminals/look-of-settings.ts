import { DARK, DEFAULT_LOOK, LIGHT, type Look } from '@sandwire/react'
import type { Settings } from '../state/settings.ts'

/** The whole look of a terminal, so that nothing stays of what is no longer chosen. */
export function lookOfSettings({ fontSize, fontFamily, screenReader }: Settings, isDark: boolean): Look {
  return {
    ...DEFAULT_LOOK,
    palette: isDark ? DARK : LIGHT,
    fontSize,
    screenReader,
    ...(fontFamily === '' ? {} : { fontFamily: `${fontFamily}, monospace` }),
  }
}
