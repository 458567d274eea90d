/** The check whether pods can have users of their own here, beside what their OCI runtime and kernel have to know. */
import { obstacleToUserNamespaces, type UserNamespacePlaces } from '../../platform/linux/mapped-ids.ts';
import { type DoctorResult, ok, warning } from './result.ts';

const CHECK = 'user namespaces';

export const checkUserNamespaces = async (places: UserNamespacePlaces): Promise<DoctorResult> => {
  const obstacle = await obstacleToUserNamespaces(places);
  if (obstacle === null) return ok(CHECK, 'pods can have users of their own');
  const { what, remedy } = obstacle;
  return warning(CHECK, `pods with hostUsers: false are refused, because ${what}`, `If you want them, ${remedy}.`);
};
