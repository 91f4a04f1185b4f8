(** Softmax of a vector of n numbers. *)

Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
Open Scope R_scope.

Definition total (n : nat) (v : nat -> R) : R := Sum n (fun k => exp (v k)).

Definition softmax (n : nat) (v : nat -> R) (j : nat) : R := exp (v j) / total n v.

Lemma total_pos n v : (0 < n)%nat -> 0 < total n v.
Proof. intro L. apply Sum_all_pos; [exact L|]. intros. apply exp_pos. Qed.

Lemma softmax_pos n v j : (0 < n)%nat -> 0 < softmax n v j.
Proof. intro L. apply Rdiv_lt_0_compat; [apply exp_pos|now apply total_pos]. Qed.

Lemma softmax_sum n v : (0 < n)%nat -> Sum n (softmax n v) = 1.
Proof.
  intro L. pose proof (total_pos n v L). unfold softmax, Rdiv. rewrite Sum_scal_r.
  fold (total n v). field. lra.
Qed.

Lemma softmax_ext n u v j : (j < n)%nat -> (forall i, (i < n)%nat -> u i = v i) -> softmax n u j = softmax n v j.
Proof.
  intros L H. unfold softmax, total. rewrite (H j L). f_equal. apply Sum_ext. intros. now rewrite H.
Qed.

Lemma is_derive_exp_comp (u : R -> R) x d : is_derive u x d -> is_derive (fun s => exp (u s)) x (d * exp (u x)).
Proof. intro H. exact (is_derive_comp exp u x _ _ (is_derive_exp (u x)) H). Qed.

Lemma is_derive_softmax n (u : R -> nat -> R) (du : nat -> R) x j :
  (j < n)%nat -> (forall k, (k < n)%nat -> is_derive (fun s => u s k) x (du k)) ->
  is_derive (fun s => softmax n (u s) j) x
    (softmax n (u x) j * (du j - Sum n (fun k => softmax n (u x) k * du k))).
Proof.
  intros L H. assert (P : 0 < total n (u x)) by (apply total_pos; lia).
  assert (Dt : is_derive (fun s => total n (u s)) x (Sum n (fun k => du k * exp (u x k)))).
  { apply (is_derive_Sum n (fun k s => exp (u s k))). intros k Lk. now apply (is_derive_exp_comp (fun s => u s k)), H. }
  pose proof (is_derive_div (fun s => exp (u s j)) (fun s => total n (u s)) x _ _
    (is_derive_exp_comp (fun s => u s j) x _ (H j L)) Dt (Rgt_not_eq _ _ P)) as D.
  unfold softmax at 1.
  replace (softmax n (u x) j * (du j - Sum n (fun k => softmax n (u x) k * du k)))
    with ((du j * exp (u x j) * total n (u x) - exp (u x j) * Sum n (fun k => du k * exp (u x k))) / total n (u x) ^ 2);
    [exact D|].
  unfold softmax. rewrite (Sum_ext n (fun k => exp (u x k) / total n (u x) * du k) (fun k => / total n (u x) * (du k * exp (u x k))))
    by (intros; field; lra).
  rewrite Sum_scal. field. lra.
Qed.

Lemma is_derive_ln_softmax n (u : R -> nat -> R) (du : nat -> R) x j :
  (j < n)%nat -> (forall k, (k < n)%nat -> is_derive (fun s => u s k) x (du k)) ->
  is_derive (fun s => ln (softmax n (u s) j)) x (du j - Sum n (fun k => softmax n (u x) k * du k)).
Proof.
  intros L H. pose proof (softmax_pos n (u x) j ltac:(lia)) as P.
  pose proof (is_derive_softmax n u du x j L H) as D.
  pose proof (is_derive_comp ln (fun s => softmax n (u s) j) x _ _ (is_derive_ln _ P) D) as C.
  replace (du j - Sum n (fun k => softmax n (u x) k * du k))
    with (scal (softmax n (u x) j * (du j - Sum n (fun k => softmax n (u x) k * du k))) (/ softmax n (u x) j)); [exact C|].
  unfold scal; simpl; unfold mult; simpl. field. lra.
Qed.

(** The l2 norm of a vector that moves, and the vector over its norm. *)
Lemma is_derive_normed n (v : R -> nat -> R) (dv : nat -> R) x l :
  (l < n)%nat -> 0 < norm n (v x) -> (forall k, (k < n)%nat -> is_derive (fun s => v s k) x (dv k)) ->
  is_derive (fun s => v s l / norm n (v s)) x
    ((dv l - v x l * dot n (v x) dv / dot n (v x) (v x)) / norm n (v x)).
Proof.
  intros L P H.
  assert (Q : 0 < dot n (v x) (v x)) by (rewrite <- norm_sqr; nra).
  assert (Dd : is_derive (fun s => dot n (v s) (v s)) x (2 * dot n (v x) dv)).
  { replace (2 * dot n (v x) dv) with (Sum n (fun k => dv k * v x k + v x k * dv k)).
    - apply (is_derive_Sum n (fun k s => v s k * v s k)). intros k Lk.
      apply (is_derive_mult (fun s => v s k) (fun s => v s k) x _ _ (H k Lk) (H k Lk)). intros. apply Rmult_comm.
    - unfold dot. rewrite <- Sum_scal. apply Sum_ext. intros. ring. }
  assert (Dn : is_derive (fun s => norm n (v s)) x (2 * dot n (v x) dv / (2 * norm n (v x)))).
  { exact (is_derive_sqrt (fun s => dot n (v s) (v s)) x _ Dd Q). }
  pose proof (is_derive_div (fun s => v s l) (fun s => norm n (v s)) x _ _ (H l L) Dn (Rgt_not_eq _ _ P)) as D.
  match type of D with is_derive _ _ ?e => replace ((dv l - v x l * dot n (v x) dv / dot n (v x) (v x)) / norm n (v x)) with e; [exact D|] end.
  rewrite <- norm_sqr. field. lra.
Qed.
