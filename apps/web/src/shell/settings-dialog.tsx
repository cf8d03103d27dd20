import { useStore } from '@sandwire/react'
import type { ReactElement } from 'react'
import { useParts } from '../state/context.ts'
import { MAX_FONT_SIZE, MIN_FONT_SIZE, type Settings } from '../state/settings.ts'
import { Dialog } from './dialog.tsx'

const SWITCHES: readonly {
  readonly key: 'copiesOnSelect' | 'allowsClipboardWrite' | 'screenReader'
  readonly label: string
  readonly meaning: string
}[] = [
  {
    key: 'copiesOnSelect',
    label: 'Copy what is selected',
    meaning: 'As soon as it is selected in a terminal.',
  },
  {
    key: 'allowsClipboardWrite',
    label: 'Programs may copy',
    meaning: 'Lets a program in a terminal put text into your clipboard. None can ever read it.',
  },
  { key: 'screenReader', label: 'Screen reader', meaning: 'Terminals tell what appears in them.' },
]

/** What a person chooses for this browser. It holds at once. */
export function SettingsDialog({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { workbench } = useParts()
  const settings = useStore(workbench.settings)
  const change = (part: Partial<Settings>): void => workbench.changeSettings(part)
  return (
    <Dialog title="Settings" onClose={onClose}>
      <label className="field">
        <span>Colors</span>
        <select
          value={settings.theme}
          onChange={(event) => change({ theme: event.target.value as Settings['theme'] })}
        >
          <option value="system">As the system has them</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </label>
      <label className="field">
        <span>Size of the text: {settings.fontSize} px</span>
        <input
          type="range"
          min={MIN_FONT_SIZE}
          max={MAX_FONT_SIZE}
          value={settings.fontSize}
          onChange={(event) => change({ fontSize: Number(event.target.value) })}
        />
      </label>
      <label className="field">
        <span>Font of terminals</span>
        <input
          value={settings.fontFamily}
          placeholder="the usual one"
          maxLength={200}
          spellCheck={false}
          onChange={(event) => change({ fontFamily: event.target.value })}
        />
      </label>
      <label className="field">
        <span>Bell</span>
        <select
          value={settings.bell}
          onChange={(event) => change({ bell: event.target.value as Settings['bell'] })}
        >
          <option value="visual">Flash</option>
          <option value="none">Nothing</option>
        </select>
      </label>
      <label className="field">
        <span>Ask before several lines are pasted</span>
        <select
          value={settings.asksBeforePaste}
          onChange={(event) => change({ asksBeforePaste: event.target.value as Settings['asksBeforePaste'] })}
        >
          <option value="always">Always</option>
          <option value="would-run">Where they would run at once</option>
          <option value="never">Never</option>
        </select>
      </label>
      {SWITCHES.map(({ key, label, meaning }) => (
        <label key={key} className="choice">
          <input
            type="checkbox"
            checked={settings[key]}
            onChange={(event) => change({ [key]: event.target.checked })}
          />
          <span>
            <strong>{label}</strong>
            <small>{meaning}</small>
          </span>
        </label>
      ))}
      <div className="dialog-actions">
        <button type="button" className="primary" onClick={onClose}>
          Done
        </button>
      </div>
    </Dialog>
  )
}
