(** The decoder with still features: Lemma 3's step, Lemma 5's steps. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums Softmax Calculus.
From Formal.scan_and_snap Require Import Growth Lemma7.
Open Scope R_scope.

(** The residual e_n - alpha, alpha = softmax of the logits. *)
Definition residual (M n : nat) (logits : nat -> R) (j : nat) : R := kron j n - softmax M logits j.

(** Lemma 1 (4) in bag form: the row of dZ/dt that belongs to the query. g is the backward signal. *)
Definition attention_step (M : nat) (eta : R) (f g : nat -> R) (l : nat) : R :=
  eta * f l * (g l - f l * dot M f g).

(** Lemma 3. F : tokens by classes; G = F^T F = I + E; Ginv its inverse, E' = I - Ginv. *)
Definition gram (M : nat) (F : nat -> nat -> R) (a b : nat) : R := Sum M (fun l => F l a * F l b).

Definition inverse_of (K : nat) (Ginv G : nat -> nat -> R) : Prop :=
  forall a b, (a < K)%nat -> (b < K)%nat -> Sum K (fun c => G a c * Ginv c b) = kron a b.

(** (26): dY/dt = eta (f_n - F E' e_n) r^T for the residual r. *)
Definition modified_step (K n : nat) (eta : R) (F E' : nat -> nat -> R) (r : nat -> R) (l j : nat) : R :=
  eta * (F l n - Sum K (fun c => F l c * E' c n)) * r j.

(** @statement Scan and Snap: Lemma 3
    @kind clause
    @hypotheses any M and K, n < K, any F whose Gram matrix F^T F = I + E has an inverse; E' = I - (I + E)^(-1);
      any residual r
    @formula dY/dt = eta_Y (f_n - F E' e_n) r^T makes row j of W = F^T Y move at eta_Y 1[j = n] r^T
    @note The sign of E' is that of Lemma 14. *)
Theorem lemma3_step :
  forall M K n eta F Ginv r, (n < K)%nat -> inverse_of K Ginv (gram M F) ->
  let E' a b := kron a b - Ginv a b in
  forall j m, (j < K)%nat ->
  Sum M (fun l => F l j * modified_step K n eta F E' r l m) = eta * kron j n * r m.
Proof.
  intros M K n eta F Ginv r Ln I E' j m Lj. unfold modified_step.
  rewrite (Sum_ext M _ (fun l => eta * r m * (F l j * F l n - F l j * Sum K (fun c => F l c * E' c n))))
    by (intros; ring).
  rewrite Sum_scal, Sum_minus. fold (gram M F j n).
  replace (Sum M (fun l => F l j * Sum K (fun c => F l c * E' c n)))
    with (Sum K (fun c => gram M F j c * E' c n)).
  - unfold E'. rewrite (Sum_ext K _ (fun c => kron c n * gram M F j c - gram M F j c * Ginv c n)) by (intros; ring).
    rewrite Sum_minus, (Sum_kron K n _ Ln), (I j n Lj Ln). ring.
  - unfold gram. rewrite (Sum_ext K _ (fun c => Sum M (fun l => F l j * F l c * E' c n)))
      by (intros; now rewrite Sum_scal_r).
    rewrite Sum_swap. apply Sum_ext. intros l _. rewrite <- Sum_scal. apply Sum_ext. intros. ring.
Qed.

(** Lemma 5. zeta_n = M/(M-1) (e_n - 1/M). *)
Definition zeta (M n j : nat) : R := INR M / (INR M - 1) * (kron j n - / INR M).

(** A class's row of W = F^T Y after s of its steps, by Lemma 3. *)
Fixpoint row (M n : nat) (eta : R) (s : nat) : nat -> R :=
  match s with
  | O => fun _ => 0
  | S before => fun j => row M n eta before j + eta * residual M n (row M n eta before) j
  end.

Lemma residual_of_zeta M n x (j : nat) : (2 <= M)%nat -> (n < M)%nat -> (j < M)%nat ->
  residual M n (fun k => (INR M - 1) * x * zeta M n k) j
  = (INR M - 1) / (INR M - 1 + exp (INR M * x)) * zeta M n j.
Proof.
  intros HM Hn Hj. assert (P : 2 <= INR M) by (apply (le_INR 2); exact HM).
  unfold residual, softmax, total, zeta.
  assert (E : forall k, exp ((INR M - 1) * x * (INR M / (INR M - 1) * (kron k n - / INR M)))
    = exp (- x) * (1 + kron k n * (exp (INR M * x) - 1))).
  { intro k. unfold kron. destruct (Nat.eqb k n).
    - replace (exp (- x) * (1 + 1 * (exp (INR M * x) - 1))) with (exp (- x) * exp (INR M * x)) by ring.
      rewrite <- exp_plus. f_equal. field. lra.
    - rewrite Rmult_0_l, Rplus_0_r, Rmult_1_r. f_equal. field. lra. }
  rewrite (Sum_ext M _ (fun k => exp (- x) * (1 + kron k n * (exp (INR M * x) - 1)))) by (intros; apply E).
  rewrite Sum_scal, Sum_plus, Sum_const, (Sum_kron M n (fun _ => exp (INR M * x) - 1) Hn), E.
  pose proof (exp_pos (- x)). pose proof (exp_pos (INR M * x)).
  unfold kron. destruct (Nat.eqb j n); field; repeat split; lra.
Qed.

(** @statement Scan and Snap: Lemma 5
    @kind clause
    @hypotheses any M >= 2, n < M, any eta_Y and number of steps s
    @formula w_n(s) = (M - 1) hstar(s) zeta_n and e_n - alpha_n = (M - 1)/(M - 1 + exp(M hstar(s))) zeta_n, where
      w_n(s + 1) = w_n(s) + eta_Y (e_n - softmax(w_n(s))) from 0 and hstar has the steps (33) *)
Theorem lemma5 :
  forall M n eta s j, (2 <= M)%nat -> (n < M)%nat -> (j < M)%nat ->
  row M n eta s j = (INR M - 1) * steps (INR M) eta s * zeta M n j /\
  residual M n (row M n eta s) j
    = (INR M - 1) / (INR M - 1 + exp (INR M * steps (INR M) eta s)) * zeta M n j.
Proof.
  intros M n eta s j HM Hn Hj. assert (P : 2 <= INR M) by (apply (le_INR 2); exact HM).
  assert (Rows : forall s j, (j < M)%nat -> row M n eta s j = (INR M - 1) * steps (INR M) eta s * zeta M n j).
  { clear s j Hj. induction s as [|s IH]; intros j Hj; cbn [row steps]; [ring|]. rewrite IH by exact Hj.
    unfold residual at 1. rewrite (softmax_ext M _ (fun k => (INR M - 1) * steps (INR M) eta s * zeta M n k) j Hj)
      by (intros; now apply IH).
    fold (residual M n (fun k => (INR M - 1) * steps (INR M) eta s * zeta M n k) j).
    rewrite residual_of_zeta by assumption. unfold rate.
    pose proof (exp_pos (INR M * steps (INR M) eta s)). field. lra. }
  split; [now apply Rows|]. unfold residual.
  rewrite (softmax_ext M _ (fun k => (INR M - 1) * steps (INR M) eta s * zeta M n k) j Hj) by (intros; now apply Rows).
  now apply residual_of_zeta.
Qed.

(** zeta's products: q_1 and q_0. *)
Lemma zeta_dot M a b : (2 <= M)%nat -> (a < M)%nat -> (b < M)%nat ->
  dot M (zeta M a) (zeta M b) =
  (if Nat.eqb a b then INR M / (INR M - 1) else - INR M / (INR M - 1) ^ 2).
Proof.
  intros HM Ha Hb. assert (P : 2 <= INR M) by (apply (le_INR 2); exact HM).
  unfold dot, zeta.
  rewrite (Sum_ext M _ (fun j => (INR M / (INR M - 1)) ^ 2 *
    (kron j a * kron j b - / INR M * (kron j a * 1) - / INR M * (kron j b * 1) + / INR M * / INR M))) by (intros; ring).
  rewrite Sum_scal, Sum_plus, !Sum_minus, !Sum_scal, Sum_const.
  rewrite (Sum_kron M a (fun j => kron j b) Ha), (Sum_kron M a (fun _ => 1) Ha), (Sum_kron M b (fun _ => 1) Hb).
  unfold kron. destruct (Nat.eqb a b); field; lra.
Qed.
