import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { MAX_FONT_SIZE, MIN_FONT_SIZE, type Settings } from '../state/settings.ts'
import { Dialog } from './dialog.tsx'
import { shellTexts } from '../texts/shell.ts'

const { settings: texts } = shellTexts

const SWITCHES: readonly {
  readonly key: 'copiesOnSelect' | 'allowsClipboardWrite' | 'screenReader'
  readonly label: string
  readonly hint: string
}[] = [
  {
    key: 'copiesOnSelect',
    ...texts.copyOnSelect,
  },
  {
    key: 'allowsClipboardWrite',
    ...texts.clipboard,
  },
  { key: 'screenReader', ...texts.screenReader },
]

/** Settings of this browser, applied immediately. */
export function SettingsDialog({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { workbench } = useParts()
  const settings = useStore(workbench.settings)
  const change = (part: Partial<Settings>): void => workbench.changeSettings(part)
  return (
    <Dialog title={texts.title} onClose={onClose}>
      <label className="field">
        <span>{texts.theme}</span>
        <select
          value={settings.theme}
          onChange={(event) => change({ theme: event.target.value as Settings['theme'] })}
        >
          <option value="system">{texts.themes.system}</option>
          <option value="light">{texts.themes.light}</option>
          <option value="dark">{texts.themes.dark}</option>
        </select>
      </label>
      <label className="field">
        <span>{texts.fontSize(settings.fontSize)}</span>
        <input
          type="range"
          min={MIN_FONT_SIZE}
          max={MAX_FONT_SIZE}
          value={settings.fontSize}
          onChange={(event) => change({ fontSize: Number(event.target.value) })}
        />
      </label>
      <label className="field">
        <span>{texts.font}</span>
        <input
          value={settings.fontFamily}
          placeholder={texts.defaultFont}
          maxLength={200}
          spellCheck={false}
          onChange={(event) => change({ fontFamily: event.target.value })}
        />
      </label>
      <label className="field">
        <span>{texts.bell}</span>
        <select
          value={settings.bell}
          onChange={(event) => change({ bell: event.target.value as Settings['bell'] })}
        >
          <option value="visual">{texts.bells.visual}</option>
          <option value="none">{texts.bells.none}</option>
        </select>
      </label>
      <label className="field">
        <span>{texts.paste}</span>
        <select
          value={settings.asksBeforePaste}
          onChange={(event) => change({ asksBeforePaste: event.target.value as Settings['asksBeforePaste'] })}
        >
          <option value="always">{texts.pastes.always}</option>
          <option value="would-run">{texts.pastes['would-run']}</option>
          <option value="never">{texts.pastes.never}</option>
        </select>
      </label>
      {SWITCHES.map(({ key, label, hint }) => (
        <label key={key} className="choice">
          <input
            type="checkbox"
            checked={settings[key]}
            onChange={(event) => change({ [key]: event.target.checked })}
          />
          <span>
            <strong>{label}</strong>
            <small>{hint}</small>
          </span>
        </label>
      ))}
      <div className="dialog-actions">
        <button type="button" className="primary" onClick={onClose}>
          {texts.done}
        </button>
      </div>
    </Dialog>
  )
}
