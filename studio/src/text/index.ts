/** All texts of the page, by area. */

import { common } from "./common.ts";

export const text = { common } as const;
