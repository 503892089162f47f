import type { ComponentProps } from 'react'

// Icons are drawn here, so that no large icon set is loaded for ten icons. They
// take the size and colour of the text around them, and are never the only sign
// for a meaning.
function icon(path: string, stroke = '1.5') {
  return function Icon(props: ComponentProps<'svg'>) {
    return (
      <svg
        viewBox="0 0 16 16"
        width="1em"
        height="1em"
        fill="none"
        stroke="currentColor"
        strokeWidth={stroke}
        strokeLinecap="round"
        strokeLinejoin="round"
        aria-hidden="true"
        focusable="false"
        {...props}
      >
        <path d={path} />
      </svg>
    )
  }
}

export const CheckIcon = icon('M3 8.5l3.2 3.2L13 4.8')
export const CrossIcon = icon('M4 4l8 8M12 4l-8 8')
export const CopyIcon = icon('M5.5 5.5h7v8h-7zM3.5 10.5v-8h7')
export const ChevronDownIcon = icon('M4 6l4 4 4-4')
export const ChevronRightIcon = icon('M6 4l4 4-4 4')
export const PlusIcon = icon('M8 3v10M3 8h10')
export const SearchIcon = icon('M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.5 10.5l3 3')
export const ArchiveIcon = icon('M2.5 3.5h11v3h-11zM3.5 6.5v6h9v-6M6.5 9h3')
export const PinIcon = icon('M6 2h4l-.5 4.5L12 9H4l2.5-2.5zM8 9v5')
export const BellIcon = icon('M4 11V7a4 4 0 018 0v4l1 1.5H3zM6.5 14h3')
export const DotsIcon = icon('M3.5 8h.01M8 8h.01M12.5 8h.01', '2.25')
export const PlayIcon = icon('M5 3.5v9l7-4.5z')
export const StopIcon = icon('M4.5 4.5h7v7h-7z')
export const SendIcon = icon('M8 13V3M4 7l4-4 4 4')
export const WarningIcon = icon('M8 2.5l6 11H2zM8 6.5v3M8 11.5v.01')
export const ClockIcon = icon('M8 14A6 6 0 108 2a6 6 0 000 12zM8 5v3l2 1.5')
export const RetryIcon = icon('M13 8a5 5 0 11-1.6-3.7M13 2.5v2.3h-2.3')
export const TrashIcon = icon('M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9')
export const PencilIcon = icon('M3 13l.6-2.6 7-7 2 2-7 7z')
export const LinkIcon = icon('M9.5 3H13v3.5M13 3L7.5 8.5M11 9.5V13H3V5h3.5')
export const MenuIcon = icon('M2.5 4.5h11M2.5 8h11M2.5 11.5h11')
export const AgentsIcon = icon(
  'M5 5h6a2 2 0 012 2v4a2 2 0 01-2 2H5a2 2 0 01-2-2V7a2 2 0 012-2zM8 5V2.5M6 9h.01M10 9h.01',
)
export const ApprovalsIcon = icon('M8 2L3 4v4c0 3 2.2 5 5 6 2.8-1 5-3 5-6V4zM6 8l1.5 1.5 3-3')
export const RunsIcon = icon('M2.5 4h5M5 8h6M8.5 12h5')
export const FilesIcon = icon('M2.5 4.5v8h11v-6.5H8L6.500 4z')
export const SettingsIcon = icon(
  'M2.5 5h7M12.5 5h1M2.5 11H4M7 11h6.5' +
    'M11 6.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM5.5 12.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3z',
)
export const ThemeIcon = icon('M8 13.5a5.5 5.5 0 100-11 5.5 5.5 0 000 11zM8 2.5v11M10 3.2v9.6M12 4.5v7')
export const KeyboardIcon = icon(
  'M3 4h10a1.5 1.5 0 011.5 1.5v5' +
    'A1.5 1.5 0 0113 12H3a1.5 1.5 0 01-1.5-1.5v-5A1.5 1.5 0 013 4zM4 7h.01M7 7h.01M10 7h.01M5 9.5h6',
)
export const BranchIcon = icon('M4.5 3v10M4.5 9.5c0-3 7-1.5 7-5M4.5 3a1 1 0 100-.01M11.5 3.5a1 1 0 100-.01')
export const ChevronLeftIcon = icon('M10 3.5L5.5 8l4.5 4.5')
