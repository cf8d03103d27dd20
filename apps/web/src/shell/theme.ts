import type { Store } from '@sandwire/client'
import type { Settings } from '../state/settings.ts'

const DARK_QUERY = '(prefers-color-scheme: dark)'

export function isDarkNow(theme: Settings['theme']): boolean {
  return theme === 'system' ? matchMedia(DARK_QUERY).matches : theme === 'dark'
}

/** Applies the selected theme, or the system's. */
export function followTheme(settings: Store<Settings>, onChange: () => void): void {
  const apply = (): void => {
    document.documentElement.dataset['theme'] = isDarkNow(settings.get().theme) ? 'dark' : 'light'
    onChange()
  }
  matchMedia(DARK_QUERY).addEventListener('change', apply)
  settings.subscribe(apply)
  apply()
}
