import type { ReactElement } from 'react'

/** Paths on a 16×16 grid, stroked with the text color. */
const PATHS = {
  terminal: 'M2.5 3.5l4 4.5-4 4.5M8 12.5h5.5',
  files: 'M4 2h5l3.5 3.5V14H4zM9 2v3.5h3.5',
  folder: 'M1.5 4v8.5h13V5.5h-6L7 4z',
  search: 'M7 12A5 5 0 107 2a5 5 0 000 10zM10.6 10.6L14.5 14.5',
  git: 'M5 4.5v7M5 8c4 0 6-1 6-3.5M5 4.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM5 14.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM11 4.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3z',
  box: 'M2 5l6-3 6 3v6l-6 3-6-3zM2 5l6 3 6-3M8 8v6',
  people:
    'M6 7.5a2.5 2.5 0 100-5 2.5 2.5 0 000 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M10.5 2.8a2.5 2.5 0 010 4.4M12 9.8c1.6.5 2.5 1.8 2.5 3.7',
  settings:
    'M8 10a2 2 0 100-4 2 2 0 000 4zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4',
  plus: 'M8 3v10M3 8h10',
  zoom: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  close: 'M4 4l8 8M12 4l-8 8',
  more: 'M3 8h.01M8 8h.01M13 8h.01',
  agent: 'M3 6h10v7H3zM8 6V3M8 3h.01M6 9h.01M10 9h.01M1.5 8v3M14.5 8v3',
  play: 'M5 3l8 5-8 5z',
  stop: 'M4 4h8v8H4z',
  trash: 'M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.5 9h6l.5-9',
  refresh: 'M13 8a5 5 0 11-1.5-3.6M13 2v3h-3',
  share:
    'M11 5a2 2 0 100-4 2 2 0 000 4zM4.5 10a2 2 0 100-4 2 2 0 000 4zM11 15a2 2 0 100-4 2 2 0 000 4zM6.3 7l3-2M6.3 9l3 2.6',
  splitRight: 'M2 3h12v10H2zM8 3v10',
  splitDown: 'M2 3h12v10H2zM2 8h12',
  download: 'M8 2v8M4.5 7L8 10.5 11.5 7M3 13.5h10',
  upload: 'M8 11V3M4.5 6.5L8 3l3.5 3.5M3 13.5h10',
  check: 'M3 8.5l3.5 3.5L13 4.5',
  minus: 'M3 8h10',
  undo: 'M3 6h7a3.5 3.5 0 010 7H6M3 6l3-3M3 6l3 3',
  history: 'M8 14A6 6 0 102.5 5.6M2 2.5v3.2h3.2M8 4.8V8l2.2 2',
  chevron: 'M6 4l4 4-4 4',
  up: 'M4 10l4-4 4 4',
  down: 'M4 6l4 4 4-4',
  keyboard: 'M1.5 4h13v8h-13zM4 6.5h.01M6.5 6.5h.01M9 6.5h.01M11.5 6.5h.01M4.5 9.5h7',
  menu: 'M2 4h12M2 8h12M2 12h12',
} as const

export type IconName = keyof typeof PATHS

/** Decorative: the labeled element is its parent. */
export function Icon({ name }: { readonly name: IconName }): ReactElement {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

/** A button with only an icon; the label is its accessible name. */
export function IconButton({
  icon,
  label,
  onClick,
  isPressed,
  isDisabled = false,
  isMouseOnly = false,
}: {
  readonly icon: IconName
  readonly label: string
  readonly onClick: () => void
  readonly isPressed?: boolean
  readonly isDisabled?: boolean
  /** Not in the tab order, because there is another way to reach the action. */
  readonly isMouseOnly?: boolean
}): ReactElement {
  return (
    <button
      type="button"
      className="icon-button"
      title={label}
      aria-label={label}
      aria-pressed={isPressed}
      disabled={isDisabled}
      tabIndex={isMouseOnly ? -1 : undefined}
      onClick={(event) => {
        event.stopPropagation()
        onClick()
      }}
    >
      <Icon name={icon} />
    </button>
  )
}
