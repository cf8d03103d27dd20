/** What the renderer thread is told. Requests with an id are answered, unless their screen is closed first. */
export type ScreenRequest =
  | { readonly kind: 'open'; readonly screen: number; readonly cols: number; readonly rows: number }
  | { readonly kind: 'resize'; readonly screen: number; readonly cols: number; readonly rows: number }
  | { readonly kind: 'feed'; readonly screen: number; readonly id: number; readonly bytes: Uint8Array }
  | { readonly kind: 'render'; readonly screen: number; readonly id: number }
  | { readonly kind: 'close'; readonly screen: number }

export interface ScreenReply {
  readonly screen: number
  readonly id: number
  /** The rendered screen; absent for a feed. */
  readonly data?: Uint8Array
}
